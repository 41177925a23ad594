// The DSH bundle: mounts the skill and, as soon as Python is ready, the MCP server. docs/dsh.md describes it.
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

export const name = 'baton'
export const inject = ['skills', 'tools']

const LAUNCHER = fileURLToPath(new URL('./baton', import.meta.url))
const SKILLS = fileURLToPath(new URL('./skills', import.meta.url))
const BOOT_WAIT_MS = 120_000 // the first start installs packages: DSH waits this long for it, then boots in any case
const CALL_MS = 3_600_000 // a call may merge and run checks

/** A package that comes with DSH: beside this file (packed), else from the profile (linked). */
function inBox(ctx, id) {
  for (const base of [import.meta.url, ctx.baseUrl]) {
    try {
      return import(pathToFileURL(createRequire(base).resolve(id)).href)
    } catch {} // not from here
  }
  throw new Error(`baton: this DSH has no ${id}`)
}

/** Start Baton once, which makes its Python environment if need be. What is wrong, in one line, or nothing. */
function prepare(ctx, python) {
  return new Promise((done) => {
    let said = ''
    const child = spawn(python, [LAUNCHER, '--version'], { stdio: ['ignore', 'ignore', 'pipe'], windowsHide: true })
    const release = ctx.effect(() => () => void child.kill())
    child.stderr.setEncoding('utf8').on('data', (text) => {
      if (text.startsWith('baton:')) process.stderr.write(text)
      said = (said + text).slice(-4000)
    })
    const fix = 'install Python 3.10 or newer, or name one with BATON_PYTHON, and restart DSH'
    child.on('error', (error) => done(`${python} does not start (${error.code}); ${fix}`))
    child.on('close', (code) => {
      release()
      const line = said.trim().split('\n').pop().replace(/^error: /, '')
      done(code === 0 ? undefined : line || `${python} ended with ${code}; ${fix}`)
    })
  })
}

export async function apply(ctx, config) {
  const named = config?.python || process.env.BATON_PYTHON
  if (named) process.env.BATON_PYTHON = /[/\\]/.test(named) ? resolve(named) : named // for the shells of children, too
  const python = process.env.BATON_PYTHON || (process.platform === 'win32' ? 'python' : 'python3')
  const [skills, mcp] = await Promise.all(['skill-filesystem', 'mcp-client'].map((id) => inBox(ctx, `@deepseek-ai/dsh-${id}`)))
  await ctx.plugin(skills, { providerName: 'baton', includeDefaultRoots: false, customSkillDirs: [SKILLS] })

  let trying, mounted // one attempt at a time; a mounted client looks after its server by itself
  const start = async () => {
    const problem = mounted ? undefined : await prepare(ctx, python)
    if (problem !== undefined) return problem
    await (mounted ??= ctx.plugin(mcp, {
      transport: 'stdio', serverName: 'baton', command: python, args: [LAUNCHER, 'mcp'],
      toolCallTimeoutMs: config?.toolCallTimeoutMs ?? CALL_MS, failOnStartupError: false,
    }))
    if (ctx.tools.get('mcp__baton__actions')) return void remove()
    return `the MCP server does not start; to see why: ${python} ${LAUNCHER} mcp`
  }
  const attempt = () => (trying ??= start().catch(String).finally(() => (trying = undefined)))
  // Until the server's tools are there, this one is: it waits for them, or says what is wrong, and looks again each time.
  const remove = ctx.tools.register({
    name: 'mcp__baton__why', parameters: { type: 'object', properties: {} },
    description: 'The other tools of Baton are missing. Call this to wait for them, or to learn why and what to do.',
    output: { schema: { type: 'string' }, render: (_args, text) => [{ type: 'text', text }] },
    async execute() {
      const problem = await attempt()
      if (problem !== undefined) throw new Error(`Baton is not available: ${problem}`)
      return 'The tools of Baton are there now.'
    },
  })
  const late = new Promise((done) => setTimeout(done, BOOT_WAIT_MS, 'its Python environment is still being made').unref())
  const problem = await Promise.race([attempt(), late])
  if (problem !== undefined) process.stderr.write(`baton: its tools are not available: ${problem}\n`)
}

// The DSH bundle: mounts the skill and, as soon as Python is ready, the MCP server. docs/dsh.md describes it.
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { fileURLToPath, pathToFileURL } from 'node:url'

export const name = 'baton'
export const inject = ['skills', 'tools']

const LAUNCHER = fileURLToPath(new URL('./baton', import.meta.url))
const SKILLS = fileURLToPath(new URL('./skills', import.meta.url))
const FIRST_TOOL = 'mcp__baton__actions' // every run begins with it
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
  if (config?.python) process.env.BATON_PYTHON = config.python // reaches the seal commands of children, too
  const python = process.env.BATON_PYTHON || (process.platform === 'win32' ? 'python' : 'python3')
  const complain = (problem) => process.stderr.write(`baton: its tools are not available: ${problem}\n`)
  const [skills, mcp] = await Promise.all(['skill-filesystem', 'mcp-client'].map((id) => inBox(ctx, `@deepseek-ai/dsh-${id}`)))
  await ctx.plugin(skills, { providerName: 'baton', includeDefaultRoots: false, customSkillDirs: [SKILLS] })

  let preparing = prepare(ctx, python)
  const late = new Promise((done) => setTimeout(done, BOOT_WAIT_MS, 'its Python environment is still being made').unref())
  const mount = async () => {
    await ctx.plugin(mcp, {
      transport: 'stdio', serverName: 'baton', command: python, args: [LAUNCHER, 'mcp'],
      toolCallTimeoutMs: config?.toolCallTimeoutMs ?? CALL_MS, failOnStartupError: false,
    })
    if (ctx.tools.get(FIRST_TOOL) === undefined) complain(`the MCP server does not start; to see why: ${python} ${LAUNCHER} mcp`)
  }
  const problem = await Promise.race([preparing, late])
  if (problem === undefined) return void (await mount())
  complain(problem)
  const look = async () => {
    const now = (await preparing) && (await (preparing = prepare(ctx, python)))
    return now ?? (remove(), void (await mount()))
  }
  let looking // no server: instead of being absent, the first tool says why, and looks again
  const remove = ctx.tools.register({
    name: FIRST_TOOL, description: 'Baton is not available. Call this to learn why.', parameters: { type: 'object', properties: {} },
    output: { schema: { type: 'string' }, render: (_args, text) => [{ type: 'text', text }] },
    async execute() {
      const now = await (looking ??= look().finally(() => (looking = undefined)))
      if (now !== undefined) throw new Error(`Baton is not available: ${now}`)
      return `Baton is available now: call ${FIRST_TOOL} again.`
    },
  })
}

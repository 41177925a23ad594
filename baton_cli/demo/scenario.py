"""The throwaway project, its change, and who plays which part. Data only.

The program greets in several languages. Each language has a key, and two languages that choose the same key are each
green alone and red together: what only a gate before the merge can see.
"""

from __future__ import annotations

CHANGE = "greet-the-world"
CHECK = ("sh", "check.sh")

HELLO = """\
#!/bin/sh
# Says hello, in its own folder: sh hello.sh [LANGUAGE [OPTION]]
options="plain"
language=${1:-en}
option=${2:-plain}
[ -f "greetings/$language" ] || { echo "no such language: $language" >&2; exit 2; }
case " $options " in *" $option "*) ;; *) echo "no such option: $option" >&2; exit 2 ;; esac
{ read -r key; read -r words; } <"greetings/$language"
. "./options/$option"
echo "$words"
"""

# Few processes, since it runs often: in every seal, before every merge, and for the verdict.
CHECK_SH = """\
#!/bin/sh
# Green when every language has a greeting and a key of its own, and hello.sh knows every option.
keys=" "
for file in greetings/*; do
  key='' words=''
  { read -r key; read -r words; } <"$file"
  [ -n "$key" ] && [ -n "$words" ] || { echo "$file: a key and a greeting are needed"; exit 1; }
  case "$keys" in *" $key "*) echo "$file: the key $key is taken"; exit 1 ;; esac
  keys="$keys$key "
done
for file in options/*; do
  (set -- en "${file#options/}"; . ./hello.sh) >/dev/null || { echo "$file: does not work"; exit 1; }
done
"""

PROPOSAL = """\
# Proposal: greet the world

## Why

The program only greets in English. Visitors from elsewhere (日本, Österreich, España …) deserve better.

## What changes

- More languages, each with a key of its own for the menu.
- An option that changes how the greeting is said.
"""

SPEC = """\
## ADDED Requirements

### Requirement: Greetings in many languages
The program SHALL greet in every language that has a file in `greetings/`, and no two languages SHALL share a key.

#### Scenario: A visitor from Japan
- **WHEN** `sh hello.sh ja` runs
- **THEN** it prints こんにちは
"""

# No newline at the end, and a nested box of another kind: what an editor leaves, Baton must leave too.
TASKS = """\
# Tasks: greet the world

## 1. More languages

Every language is a file in `greetings/`: its key, then the words.

- [ ] 1.1 Greet in German: `greetings/de` says „Grüß Gott!“, and README names it
  * [ ] ü and ß arrive as they are
- [ ] 1.2 Greet in Spanish: `greetings/es` says “¡Hola, qué tal!”
- [ ] 1.3 Greet in Swedish: `greetings/sv` says ”Hallå där!”
- [ ] 1.4 Greet in Japanese: `greetings/ja` says 「こんにちは」

## 2. Ways to say it

- [ ] 2.1 Add the option `loud`, which shouts"""

# What a person puts at the top of the first section in mid-run; the numbers below it move.
INSERTED = "- [ ] 1.1 Greet in French: `greetings/fr` says « Bonjour ! », and README names it"

FILES = {
    "README": "Says hello.\nLanguages: English\n",
    "hello.sh": HELLO,
    "check.sh": CHECK_SH,
    "greetings/en": "e\nHello!\n",
    "options/plain": ":\n",
    "baton.toml": '[verify]\ncommands = ["sh check.sh"]\n',
    f"openspec/changes/{CHANGE}/proposal.md": PROPOSAL,
    f"openspec/changes/{CHANGE}/specs/greetings/spec.md": SPEC,
    f"openspec/changes/{CHANGE}/tasks.md": TASKS,
}

# Identity and settings of the throwaway repository itself, so that neither the user's own nor their absence matters.
GIT_CONFIG = """\
[user]
	name = Baton demo
	email = demo@example.invalid
[core]
	autocrlf = false
	excludesFile = {nothing}
	attributesFile = {nothing}
[commit]
	gpgSign = false
[merge]
	conflictStyle = merge
[rerere]
	enabled = false
[maintenance]
	auto = false
[gc]
	auto = 0
"""

PARALLEL = 2  # agents of each drive; two drives start at once

# What the first agent of each ticket of the first section plays (`agent.py` knows the parts).
CAST = {"de": "crash", "es": "hasty", "sv": "steady", "ja": "liar"}
CRASHED, LIAR = "de", "ja"
COLLIDING = ("es", "sv")  # each green alone, red together
ADDED = "fr"
SAME_LINE = ("de", "fr")  # both add a name to the same line of README
NAMES = {"de": "German", "es": "Spanish", "sv": "Swedish", "ja": "Japanese", "fr": "French"}

"""The throwaway project, its change, and who plays which part. Data only.

The program greets in several languages. Each language has a key, and two languages that choose the same key are each
green alone and red together: what only a gate before the merge can see.
"""

from __future__ import annotations

CHANGE = "greet-the-world"
CHECK = ("sh", "check.sh")

HELLO = """\
#!/bin/sh
# Says hello: sh hello.sh [LANGUAGE [OPTION]]
cd "$(dirname "$0")" || exit 2
options="plain"
language=${1:-en}
option=${2:-plain}
[ -f "greetings/$language" ] || { echo "no such language: $language" >&2; exit 2; }
case " $options " in *" $option "*) ;; *) echo "no such option: $option" >&2; exit 2 ;; esac
{ read -r key; read -r words; } <"greetings/$language"
. "./options/$option"
"""

CHECK_SH = """\
#!/bin/sh
# Green when every language greets, every option works, and no two languages share a key.
cd "$(dirname "$0")" || exit 2
keys=" "
for file in greetings/*; do
  key='' words=''
  { read -r key; read -r words; } <"$file"
  [ -n "$key" ] && [ -n "$words" ] || { echo "$file: a key and a greeting are needed"; exit 1; }
  case "$keys" in *" $key "*) echo "$file: the key $key is taken"; exit 1 ;; esac
  keys="$keys$key "
  [ "$(sh hello.sh "${file#greetings/}")" = "$words" ] || { echo "$file: hello.sh does not say it"; exit 1; }
done
for file in options/*; do
  sh hello.sh en "${file#options/}" >/dev/null || { echo "$file: does not work"; exit 1; }
done
"""

PROPOSAL = """\
# Proposal: greet the world

## Why

The program only greets in English. Visitors from elsewhere (日本, Österreich, España …) deserve better.

## What changes

- Five more languages, each with a key of its own for the menu.
- Two options that change how the greeting is said.
- README names every language.
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

- [ ] 1.1 Greet in German: `greetings/de` says „Grüß Gott!“
  * [ ] ü and ß arrive as they are
- [ ] 1.2 Greet in Spanish: `greetings/es` says “¡Hola, qué tal!”
- [ ] 1.3 Greet in Swedish: `greetings/sv` says ”Hallå där!”
- [ ] 1.4 Greet in Japanese: `greetings/ja` says 「こんにちは」
- [ ] 1.5 Greet in Czech: `greetings/cs` says „Dobrý den!“

## 2. Ways to say it

- [ ] 2.1 Add the option `loud`, which shouts
- [ ] 2.2 Add the option `twice`, which says it two times

## 3. Tell people

- [ ] 3.1 Name every language in README, each in its own words"""

FILES = {
    "README": "Says hello. Languages: English.\n",
    "hello.sh": HELLO,
    "check.sh": CHECK_SH,
    "greetings/en": "e\nHello!\n",
    "options/plain": 'echo "$words"\n',
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
"""

# Two sessions ask at the same moment; together they want exactly the five tickets of the first section.
SESSIONS = {"left": 3, "right": 2}

# How the first agent of a ticket behaves (`agent.py` knows the parts); everybody else is steady.
CAST = {"1.1": "crash", "1.2": "hasty", "1.4": "liar", "1.5": "cut-off"}
STEADY = "steady"
LIAR, CRASHED, HASTY, CUT_OFF = "1.4", "1.1", "1.2", "1.5"
COLLIDING = ("1.2", "1.3")  # each green alone, red together
SAME_LINE = ("2.1", "2.2")

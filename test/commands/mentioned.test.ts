import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import test from 'ava'

interface Command {
  readonly flags: Readonly<Record<string, { readonly aliases?: readonly string[] }>>
}
const { commands } = JSON.parse(readFileSync('oclif.manifest.json', 'utf8')) as {
  commands: Record<string, Command>
}
const ids = Object.keys(commands).map((id) => id.replaceAll(':', ' '))
const topics = new Set(ids.filter((id) => id.includes(' ')).map((id) => id.split(' ')[0]))
/** Words that may follow rsm although they are not commands. */
const others = new Set(['help', 'version'])

function files(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && /\.(ts|tsx|md|sh|service|yml)$/.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => !path.includes('node_modules'))
}

/** Other phrases that begin with rsm: purposes of keys, the name of a process, and lines that the server prints. */
const noCommands = new Set(['typed input', 'sealing', 'sealing key', 'agent terminals', 'server listening'])

/** The first words of a command in code: after a back-tick, a quote, a prompt, an indent or an introduction. */
const mention =
  /(?:[`'"]|next: |^ {4,}|(?:^|[`'"])[$#] )(?:[A-Z_]+=\S+ )*rsm ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?/gm

test('A17 every command named in a hint, help or a document exists', (t) => {
  const unknown: string[] = []
  let seen = 0
  for (const path of ['README.md', ...files('src'), ...files('docs'), ...files('examples')])
    for (const [, first = '', second] of readFileSync(path, 'utf8').matchAll(mention)) {
      if (noCommands.has(second === undefined ? first : `${first} ${second}`)) continue
      seen++
      const isKnown = topics.has(first)
        ? second === undefined || ids.some((id) => `${id} `.startsWith(`${first} ${second} `))
        : ids.includes(first) || others.has(first)
      if (!isKnown) unknown.push(`${path}: rsm ${first} ${second ?? ''}`)
    }
  t.deepEqual(unknown, [])
  t.true(seen > 300, String(seen))
})

/** A command in a document, with its words up to the command that a host runs, a comment or another command. */
const line =
  /(?:[`'"]|^ {4,}|(?:^|[`'"])(?:[a-z]*[$#]|>) *)(?:[A-Z_]+=\S+ )*rsm ([a-z][a-z-]*)((?: [a-z][a-z-]*)?)([^`\n|;&]*)/gm

test('every option named in a document with its command exists', (t) => {
  const unknown: string[] = []
  let seen = 0
  for (const path of ['README.md', ...files('docs'), ...files('examples')])
    for (const [, first = '', second = '', rest = ''] of readFileSync(path, 'utf8').matchAll(line)) {
      const id = ids.includes(first + second) ? first + second : first
      const command = commands[id.replaceAll(' ', ':')]
      if (command === undefined) continue
      const known = new Set(
        Object.entries(command.flags).flatMap(([name, flag]) => [name, ...(flag.aliases ?? [])]),
      )
      const [own = ''] = `${second} ${rest}`.split(/ -- | {2}# /)
      for (const [, option = ''] of own.matchAll(/(?<=\s)--([a-z][a-z-]*)/g)) {
        seen++
        if (!known.has(option) && option !== 'help') unknown.push(`${path}: rsm ${id} --${option}`)
      }
    }
  t.deepEqual(unknown, [])
  t.true(seen > 80, String(seen))
})

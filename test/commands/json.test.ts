import { readFileSync } from 'node:fs'
import test from 'ava'
import { fetchDocument } from '../helpers/api/api-document.ts'
import { runLines } from '../helpers/clients/command-line.ts'
import { everyCommand, notOnTour, withOption } from '../helpers/clients/every-command.ts'

/** Command and shape of each row of docs/use/json.md. */
const rows = new Map(
  [...readFileSync('docs/use/json.md', 'utf8').matchAll(/^\| `rsm ([^`]+)` \| (.+) \|$/gm)].map(
    ([, command = '', shape = '']) => [command, shape] as const,
  ),
)

test('docs/use/json.md names every command', (t) => {
  const manifest = JSON.parse(readFileSync('oclif.manifest.json', 'utf8')) as {
    commands: Record<string, unknown>
  }
  const silent = new Set([
    'server start',
    'agent run',
    'quickstart',
    'terminal',
    'tui',
    'completion',
    'recordings play',
  ])
  const commands = Object.keys(manifest.commands).map((id) => id.replaceAll(':', ' '))
  for (const command of commands) t.true(rows.has(command) || silent.has(command), command)
  for (const row of rows.keys())
    t.true(
      commands.some((command) => row.startsWith(command)),
      row,
    )
})

test('--json prints the objects of docs/use/json.md, valid by the schemas of the API', async (t) => {
  const { server, lines: words, added } = await everyCommand(t, '--json')
  const lines = words.map((line) => ({ argv: withOption(line, '--json') }))
  const ran = await runLines(t, server, lines)
  const { faultOfSchema } = await fetchDocument(server)
  const faultOf = (shape: string, value: unknown): string | null => {
    const [name = ''] = /^`\w+`/.exec(shape) ?? []
    if (name !== '') return faultOfSchema(name.slice(1, -1), value)
    const fields = shape
      .replace(/^`\{|\}`.*$/g, '')
      .split(', ')
      .map((field) => field.split(': '))
    const found = value as Record<string, unknown>
    t.deepEqual(Object.keys(found).sort(), fields.map(([key = '']) => key).sort())
    for (const [key = '', inner] of fields) {
      if (inner === undefined) continue
      const each = inner.startsWith('[') ? (found[key] as unknown[]) : [found[key]]
      for (const one of each) {
        const fault = faultOfSchema(inner.replace(/[[\]]/g, ''), one)
        if (fault !== null) return fault
      }
    }
    return null
  }
  t.is(faultOf(rows.get('users add') ?? '', JSON.parse(added.stdout)), null)
  const unrun = new Set(rows.keys())
  for (const [at, line] of words.entries()) {
    const got = ran[at]
    const row =
      [...rows.keys()].filter((each) => line.startsWith(each)).sort((a, b) => b.length - a.length)[0] ?? ''
    unrun.delete(row)
    let value: unknown
    t.notThrows(() => (value = JSON.parse(got?.stdout ?? '')), `${line}: ${got?.stderr}`)
    t.is(faultOf(rows.get(row) ?? '', value), null, line)
  }
  t.deepEqual([...unrun].sort(), ['users add', ...notOnTour].sort())
})

import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { Config } from '@oclif/core/config'
import test from 'ava'

interface Described {
  readonly description?: string
}

interface Shown {
  readonly examples?: readonly string[]
  readonly summary?: string
  readonly flags: Readonly<Record<string, Described>>
  readonly args: Readonly<Record<string, Described>>
}

test('oclif.manifest.json matches the commands; npm run manifest updates it', async (t) => {
  const config = new Config({ root: resolve('.') })
  await config.load()
  const kept = JSON.parse(readFileSync('oclif.manifest.json', 'utf8')) as { commands: Record<string, object> }
  const { Plugin } = await import('@oclif/core')
  const plugin = new Plugin({
    root: resolve('.'),
    type: 'core',
    ignoreManifest: true,
    respectNoCacheDefault: true,
  })
  await plugin.load()
  const made = JSON.parse(JSON.stringify(plugin.manifest.commands)) as Record<string, object>
  t.deepEqual(Object.keys(kept.commands), Object.keys(made).sort())
  for (const [id, command] of Object.entries(made)) t.deepEqual(kept.commands[id], command, id)
})

test('the description of a topic lists exactly its commands', (t) => {
  const { commands } = JSON.parse(readFileSync('oclif.manifest.json', 'utf8')) as { commands: object }
  const { oclif } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    oclif: { topics: Record<string, { description: string }> }
  }
  const topics = Object.keys(commands).flatMap((id) => {
    const words = id.split(':')
    return words.slice(1).map((_, at) => words.slice(0, at + 1).join(':'))
  })
  const sorted = (words: string[]) => [...new Set(words)].sort((a, b) => a.localeCompare(b))
  t.deepEqual(sorted(Object.keys(oclif.topics)), sorted(topics))
  for (const [topic, { description }] of Object.entries(oclif.topics)) {
    const verbs = Object.keys(commands).filter((id) => id.startsWith(`${topic}:`))
    const said = description.slice(description.lastIndexOf(': ') + 2).split(', ')
    const names = verbs.map((id) => id.slice(topic.length + 1).replace(/:.*/, ''))
    t.deepEqual(sorted(said), sorted(names), topic)
  }
})

test('every command has a summary and an example', (t) => {
  const { commands } = JSON.parse(readFileSync('oclif.manifest.json', 'utf8')) as {
    commands: Record<string, Shown>
  }
  for (const [id, command] of Object.entries(commands)) {
    t.truthy(command.summary, id)
    t.true((command.examples?.length ?? 0) > 0, id)
  }
})

test('flags and arguments are described in at most 60 characters, commands in at most 80', (t) => {
  const { commands } = JSON.parse(readFileSync('oclif.manifest.json', 'utf8')) as {
    commands: Record<string, Shown>
  }
  for (const [id, { summary = '', flags, args }] of Object.entries(commands)) {
    t.true(summary.length <= 80, `${id}: ${summary}`)
    for (const [name, { description = '' }] of [...Object.entries(flags), ...Object.entries(args)])
      t.true(description !== '' && description.length <= 60, `${id} ${name}: ${description}`)
  }
})

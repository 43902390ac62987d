import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { Config } from '@oclif/core/config'
import test from 'ava'

interface Shown {
  readonly examples?: readonly string[]
  readonly summary?: string
}

test('oclif.manifest.json is what the commands say; npm run manifest makes it anew', async (t) => {
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

test('every command has a summary and an example', (t) => {
  const { commands } = JSON.parse(readFileSync('oclif.manifest.json', 'utf8')) as {
    commands: Record<string, Shown>
  }
  for (const [id, command] of Object.entries(commands)) {
    t.truthy(command.summary, id)
    t.true((command.examples?.length ?? 0) > 0, id)
  }
})

import { Config } from '@oclif/core/config'
import { Help } from '@oclif/core/help'
import { ownPackage } from '../../disk/own-files.ts'
import type { Manifest } from './command-line.ts'

type Plugins = NonNullable<Parameters<typeof Config.load>[0] & object>

/**
 * Shows the help of these words as oclif writes it. oclif would look for package.json, manifest and plugins on disk: it is
 * told what they say, as in a single executable there are no such files.
 */
export async function showHelp(words: readonly string[], manifest: Manifest): Promise<void> {
  const pjson = ownPackage()
  const rsm = {
    name: pjson.name,
    alias: pjson.name,
    version: pjson.version,
    root: '/',
    type: 'core',
    isRoot: true,
    valid: true,
    hasManifest: true,
    hooks: {},
    pjson,
    commandIDs: Object.keys(manifest.commands),
    commands: Object.entries(manifest.commands)
      .map(([id, command]) => ({ ...command, id, pluginAlias: pjson.name, pluginType: 'core' }))
      .sort((one, other) => one.id.localeCompare(other.id)),
    topics: Object.entries(pjson.oclif.topics).map(([name, topic]) => ({ name, ...topic })),
  }
  const config = await Config.load({ root: '/', plugins: new Map([['rsm', rsm]]) } as unknown as Plugins)
  await new Help(config).showHelp([...words])
}

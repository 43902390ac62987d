import { Config } from '@oclif/core/config'
import { CommandHelp, Help } from '@oclif/core/help'
import { ownPackage } from '../../disk/own-files.ts'
import type { Manifest } from './command-line.ts'

type Plugins = NonNullable<Parameters<typeof Config.load>[0] & object>

/** Commands and topics that help lists first, each with its summary. */
const common = ['exec', 'cp', 'logs', 'tasks', 'hosts', 'terminal', 'tui']
/** The others grouped by use, without summaries, so that all fit on a screen of 80x24. */
const others: [use: string, names: string[]][] = [
  ['Automate', ['scripts', 'schedules', 'webhooks', 'events', 'api', 'completion']],
  ['Organize', ['clusters', 'enrollments', 'users', 'files', 'recordings', 'audit']],
  ['Log in', ['login', 'logout', 'whoami', 'passwd', 'totp', 'context', 'sessions', 'tokens']],
  ['Set up', ['quickstart', 'server', 'agent']],
]
const examples = [
  ["$ rsm exec -w 'web[1-3]' uptime", 'run a command on three hosts'],
  ["$ rsm cp app.conf 'web[1-3]:/etc/app/'", 'copy a file to them'],
  ['$ rsm logs -f latest', 'follow the output of your last task'],
  ['$ rsm tasks list --status RUNNING', 'list the running tasks'],
  ['$ rsm terminal web1', 'open a terminal on a host'],
] satisfies [string, string][]

/** Omits the global flags, because they would take up half of the page. */
class CommandPage extends CommandHelp {
  override generate(): string {
    const { flags } = this.command
    const shown = ['json', 'quiet', 'url', 'context']
      .filter((name) => flags[name]?.helpGroup === 'GLOBAL')
      .map((name) => `--${name}`)
      .join(', ')
    this.command.flags = Object.fromEntries(
      Object.entries(flags).filter(([, { helpGroup }]) => helpGroup !== 'GLOBAL'),
    )
    return `${super.generate()}\n\nGlobal flags, such as ${shown}: rsm help flags`
  }

  protected override defaultUsage(): string {
    const { flags } = this.command
    const needed = Object.entries(flags).filter(([, { required }]) => required)
    this.command.flags = Object.fromEntries(needed)
    const usage = super.defaultUsage()
    this.command.flags = flags
    return needed.length === Object.keys(flags).length ? usage : `${usage} [OPTIONS]`
  }

  /** Keeps the command's own order of groups, e.g. targets before output. */
  protected override groupFlags(flags: Parameters<CommandHelp['groupFlags']>[0]) {
    const { mainFlags, flagGroups } = super.groupFlags(flags)
    const order = Object.values(this.command.flags).map(({ helpGroup }) => helpGroup)
    const groups = Object.entries(flagGroups).sort(([a], [b]) => order.indexOf(a) - order.indexOf(b))
    return { mainFlags, flagGroups: Object.fromEntries(groups) }
  }

  /** Omits the summary, because it is already printed above. */
  protected override description(): string | undefined {
    const { description } = this.command
    return description && this.wrap(description)
  }

  protected override examples(lines: Parameters<CommandHelp['examples']>[0]): string | undefined {
    return super.examples(lines)?.replaceAll('\n\n', '\n')
  }
}

class Pages extends Help {
  protected override CommandHelpClass = CommandPage

  protected override async showRootHelp(): Promise<void> {
    const { commands, topics, pjson } = this.config
    const about = new Map([
      // Descriptions of topics end with a list of their commands.
      ...topics.map(({ name, description = '' }) => [name, description.replace(/: [^:]*$/, '')] as const),
      ...commands.map(({ id, summary = '' }) => [id, summary] as const),
    ])
    const body = common.map((name): [string, string] => [name, about.get(name) ?? ''])
    const rest = others.map(([use, names]): [string, string] => [use, names.join(', ')])
    this.log(`${pjson.description}\n`)
    this.log(`${this.section('EXAMPLES', examples)}\n`)
    this.log(`${this.section('COMMANDS', body)}\n`)
    this.log(this.indent(this.renderList(rest, { indentation: 2, spacer: '\n' })))
    this.log('Help: rsm COMMAND --help. Flags of every command: rsm help flags')
  }

  showGlobalFlags(): void {
    // whoami has no flags of its own.
    const whoami = this.config.findCommand('whoami', { must: true })
    this.log(new CommandHelp(whoami, this.config, { ...this.opts, sections: ['flags'] }).generate())
    this.log(`
All may also come before the command. Commands that work only on this machine,
such as rsm agent status, lack the flags that choose a server.`)
  }
}

/**
 * Shows oclif's help for a command or topic. Passes in package.json and manifest, because a single executable has no such
 * files for oclif to find.
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
  const pages = new Pages(config)
  if (words[0] === 'flags') pages.showGlobalFlags()
  else await pages.showHelp([...words])
}

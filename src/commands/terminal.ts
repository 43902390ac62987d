import { string } from '@oclif/core/flags'
import { BaseCommand } from '../cli/command/base-command.ts'
import { NoTerminal } from '../cli/command/failure.ts'
import { given, optional } from '../cli/flags/checks.ts'
import { commandFromStdin } from '../cli/input/stdin.ts'
import { findHost } from '../cli/names/names.ts'
import { escapeCharacter } from '../cli/terminal/escapes.ts'
import { hasTrueColor, localSize, termOf, withKnownColour } from '../cli/terminal/term.ts'
import type { Client } from '../client/client.ts'
import { RsmError } from '../core/errors.ts'
import type { Host } from '../core/protocol/http/hosts.ts'
import type { TerminalCreate } from '../core/protocol/http/terminals.ts'

/** Finds a host by its name, `@id:17`, or a bare id if no host has that name. */
async function findNamedHost(client: Client, name: string): Promise<Host> {
  const [, user, host] = /^([^@]+)@([^@]+)$/.exec(name) ?? []
  if (user !== undefined)
    throw new RsmError('usage', `the user does not go before the host: ${name}`, {
      hint: `rsm terminal ${host} --run-as ${user}`,
    })
  try {
    return await findHost(client, name)
  } catch (error) {
    if (!(error instanceof RsmError) || error.code !== 'not_found' || !/^\d{1,15}$/.test(name)) throw error
    return client.hosts.get(Number(name)).catch(() => Promise.reject(error))
  }
}

export default class Terminal extends BaseCommand {
  static override summary = 'Open a terminal on a host'
  static override description =
    `Opens a login shell, or runs COMMAND in one. The session survives a lost connection for 60 s. The server records it, unless it was started with --no-record.
At the start of a line, ~. leaves, ~? shows help, ~^Z suspends and ~~ types one ~.
Exit code: the shell's own; 128 + the number of the signal that ended it; 255 if the session is lost or was left, or the host is unreachable.
Without a terminal on stdin, the shell runs the commands on stdin; with COMMAND, stdin is not read.`
  static override usage = 'terminal HOST [OPTIONS] [-- COMMAND...]'
  static override examples = [
    '$ rsm terminal web1',
    '$ rsm terminal web1 --run-as deploy -- htop',
    '$ echo "df -h /" | rsm terminal web1',
    '$ rsm terminal --watch SESSION',
  ]
  static override args = {
    host: optional('hostname, or @id:17'),
    // Catches a command without `--`, as ssh accepts it; here options may follow the host.
    word: optional('command to run instead of a login shell', { hidden: true }),
  }
  static override flags = {
    'run-as': string({ char: 'l', helpValue: 'USER', description: 'user to open it as on the host' }),
    shell: string({ helpValue: 'SHELL', description: "shell to run (default: the user's login shell)" }),
    escape: string({
      char: 'e',
      default: '~',
      helpValue: 'CHAR|none',
      description: 'character that begins an escape; ^X is a control character',
    }),
    watch: string({
      helpValue: 'SESSION',
      exclusive: ['run-as', 'shell'],
      description: 'watch this session; q leaves (for administrators)',
    }),
  }

  async run() {
    const end = this.argv.indexOf('--')
    const words = end === -1 ? [] : this.argv.slice(end + 1)
    const { args, flags } = await this.parse(Terminal, end === -1 ? this.argv : this.argv.slice(0, end))
    if (flags.json) throw new RsmError('usage', 'a terminal prints no JSON', { hint: 'leave out --json' })
    if (args.word !== undefined)
      throw new RsmError('usage', `unexpected ${args.word}`, {
        hint: `a command comes after --: rsm terminal ${args.host} -- ${args.word}`,
      })
    const escape = escapeCharacter(flags.escape)
    const watched = flags.watch
    if ((args.host === undefined) === (watched === undefined) || (watched !== undefined && words.length > 0))
      throw new RsmError('usage', 'name a host, or a session to --watch', {
        hint: 'rsm terminal web1, or rsm terminal --watch SESSION',
      })
    const client = await this.client()
    const sessionId = watched ?? (await this.#open(client, args.host ?? '', flags, words))
    const { AttachedTerminal } = await import('../cli/terminal/attached-terminal.ts')
    const options = { client, sessionId, watch: watched !== undefined, escape, quiet: flags.quiet }
    process.exitCode = await new AttachedTerminal(options).run()
  }

  async #command(words: readonly string[]): Promise<string | undefined> {
    if (words.length > 0) return words.join(' ')
    return process.stdin.isTTY ? undefined : commandFromStdin()
  }

  async #open(
    client: Client,
    name: string,
    flags: { 'run-as'?: string | undefined; shell?: string | undefined },
    words: readonly string[],
  ): Promise<string> {
    const host = await findNamedHost(client, name)
    if (host.status === 'OFFLINE')
      throw new NoTerminal(
        new RsmError('conflict', `${host.hostname} is OFFLINE: ${host.statusReason ?? 'reason unknown'}`, {
          hint: `rsm hosts doctor ${host.hostname}`,
        }),
      )
    const command = await this.#command(words)
    const input: TerminalCreate = {
      hostId: host.id,
      ...localSize(),
      ...given({ runAs: flags['run-as'], shell: flags.shell }),
    }
    const term = termOf(process.env)
    if (term !== undefined) input.term = term
    if (hasTrueColor(process.env)) input.trueColor = true
    if (command !== undefined) {
      input.command = command
      // Otherwise the command could wait for keys that never come.
      if (!process.stdin.isTTY) input.noStdin = true
    }
    const create = (known: TerminalCreate) => client.terminals.create(known)
    const opened = await withKnownColour(input, create).catch(async (error: unknown) => {
      if (!(error instanceof RsmError && error.code === 'conflict')) throw error
      const now = await client.hosts.get(host.id).catch(() => undefined)
      throw now?.agent?.connected === false ? new NoTerminal(error) : error
    })
    return opened.sessionId
  }
}

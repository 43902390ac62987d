import { BaseCommand } from '../cli/command/base-command.ts'
import { optional } from '../cli/flags/checks.ts'
import { findTaskId } from '../cli/names/names.ts'
import { localSize, termOf } from '../cli/terminal/term.ts'
import { sanitizeLine } from '../cli/text/sanitize.ts'
import { isColorless } from '../cli/text/screen.ts'
import type { Client } from '../client/client.ts'
import { RsmError } from '../core/errors.ts'

/** Exit code of a terminal that was lost or left. */
const sessionLost = 255

export default class Tui extends BaseCommand {
  static override summary = 'Show the fleet, or a task, full screen'
  static override description =
    'Hosts on the left, failures first; on the right the log of the chosen host, or of all hosts. The task may ' +
    'be running or finished. ? shows the keys; q leaves, and a running task continues.'
  static override examples = ['$ rsm tui', '$ rsm tui TASK', '$ rsm tui latest']
  static override args = { task: optional('task id or latest (default: the fleet)') }

  async run() {
    const { args, flags } = await this.parse(Tui)
    if (flags.json)
      throw new RsmError('usage', 'rsm tui prints no JSON', {
        hint: args.task === undefined ? 'rsm hosts list --json' : `rsm tasks show ${args.task} --json`,
      })
    this.#requireScreen(args.task)
    const client = await this.client()
    const taskId = args.task === undefined ? null : await this.#taskId(client, args.task)
    const [{ Tui: Screens }, { BlessedScreen }] = await Promise.all([
      import('../cli/tui/tui.ts'),
      import('../cli/tui/screen/blessed-screen.ts'),
    ])
    const isColoured = !isColorless() && !/^(?:vt|ansi-m)/.test(process.env['TERM'] ?? '')
    const tui = new Screens({
      client,
      taskId,
      openScreen: (listener) => new BlessedScreen(listener, isColoured),
      examine: (columns, hostId, signal) => this.#examine(client.until(signal), columns, hostId),
      runTerminal: (hostId, signal) => this.#terminal(client, hostId, signal),
    })
    const { exit, runningTask } = await tui.run()
    if (runningTask !== null) this.notice(`task ${runningTask} is still running: rsm logs -f ${runningTask}`)
    process.exitCode = exit
  }

  async #examine(client: Client, columns: number, hostId: number | null): Promise<string> {
    const { examineFleet } = await import('../cli/hosts/doctor.ts')
    const { showFleet, showHost } = await import('../cli/hosts/findings-view.ts')
    const endpoint = { ...this.server(), version: this.config.version }
    const asked = hostId === null ? undefined : `@id:${hostId}`
    const { server, hosts } = await examineFleet(client, endpoint, asked)
    if (server !== null) return showFleet(server, hosts, columns)
    return hosts.map((host) => showHost(host, columns)).join('\n')
  }

  #requireScreen(task: string | undefined): void {
    const hint = task === undefined ? 'rsm hosts list, rsm events' : `rsm logs -f ${task}`
    if (!process.stdin.isTTY || !process.stdout.isTTY)
      throw new RsmError('usage', 'rsm tui needs a terminal on stdin and stdout', { hint })
    const term = process.env['TERM'] ?? ''
    if (term === '' || term === 'dumb')
      throw new RsmError('usage', `this terminal cannot show a full screen (TERM=${term})`, { hint })
  }

  /** Looks up the task before the screen is taken, so that the error for an unknown one stays readable. */
  async #taskId(client: Client, wanted: string): Promise<string> {
    return (await client.tasks.get(await findTaskId(client, wanted), { size: 1 })).taskId
  }

  async #terminal(client: Client, hostId: number, signal: AbortSignal): Promise<string | null> {
    const opening = client.until(signal)
    const host = await opening.hosts.get(hostId)
    if (host.status === 'OFFLINE')
      throw new RsmError(
        'conflict',
        `${host.hostname} is OFFLINE: ${host.statusReason ?? 'reason unknown'}`,
        {
          hint: `rsm hosts doctor ${host.hostname}`,
        },
      )
    process.stdout.write(`rsm: ${sanitizeLine(host.hostname)}\r\n`)
    const term = termOf(process.env)
    const input = { hostId, ...localSize(), ...(term === undefined ? {} : { term }) }
    const { sessionId } = await opening.terminals.create(input)
    const { AttachedTerminal } = await import('../cli/terminal/attached-terminal.ts')
    const exit = await new AttachedTerminal({
      client,
      sessionId,
      watch: false,
      escape: '~',
      quiet: this.globals.quiet,
    }).run()
    if (exit === 0) return null
    return exit === sessionLost
      ? `the session on ${host.hostname} is lost or was left`
      : `${host.hostname}: the shell ended with ${exit}`
  }
}

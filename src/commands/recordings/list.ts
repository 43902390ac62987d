import { boolean, string } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { limitFlag, showList } from '../../cli/command/list.ts'
import { given, ifGiven } from '../../cli/flags/checks.ts'
import { findHost, refuseUnknownUser } from '../../cli/names/names.ts'
import { showBytes } from '../../cli/text/amounts.ts'
import { showDuration, timeColumn } from '../../cli/text/time.ts'
import { allPages } from '../../client/http/pages.ts'
import type { Terminal, TerminalQuery } from '../../core/protocol/http/terminals.ts'

/** Exit code or signal of the shell, or `ended` if the session ended for another reason. */
function endOf({ status, exitCode, signal, reason }: Terminal): string {
  if (status === 'OPEN') return 'open'
  if (reason !== null) return 'ended'
  return signal ?? String(exitCode ?? '-')
}

function durationOf({ startedAt, endedAt }: Terminal): number {
  return (endedAt === null ? Date.now() : Date.parse(endedAt)) - Date.parse(startedAt)
}

export default class RecordingsList extends BaseCommand {
  static override summary = 'List the recorded terminal sessions, newest first'
  static override description =
    'Lists your own; an administrator sees those of all users. With --open: sessions that are open now, recorded or not.'
  static override examples = [
    '$ rsm recordings list',
    '$ rsm recordings list --host web1 --user ann --limit 20',
    '$ rsm recordings list --open',
  ]
  static override flags = {
    host: string({ char: 'w', helpValue: 'HOST', description: 'only sessions on this host' }),
    user: string({ helpValue: 'USER', description: 'only sessions of this user' }),
    open: boolean({ description: 'only open sessions' }),
    limit: limitFlag,
  }

  async run() {
    const { flags } = await this.parse(RecordingsList)
    const client = await this.client()
    const query: TerminalQuery = {
      ...(flags.open ? { status: 'OPEN' } : { recorded: true }),
      ...given({
        hostId: (await ifGiven(flags.host, (name) => findHost(client, name)))?.id,
        user: flags.user,
      }),
    }
    const page = await allPages((paging) => client.terminals.list(paging), query, flags.limit)
    if (page.totalElements === 0) await refuseUnknownUser(client, flags.user)
    return showList(this, page, {
      noun: flags.open ? 'sessions' : 'recordings',
      filtered: flags.user !== undefined || flags.host !== undefined,
      none: flags.open ? 'no open sessions' : 'no recordings: rsm terminal HOST makes one',
      columns: [
        {
          heading: 'SESSION',
          value: (session) => session.sessionId,
          essential: true,
          shortest: ({ sessionId }) => sessionId.slice(-6),
        },
        { heading: 'HOST', value: (session) => session.hostname, essential: true },
        { heading: 'USER', value: (session) => session.user },
        timeColumn('STARTED', ({ startedAt }) => startedAt, flags.utc),
        { heading: 'TOOK', value: (session) => showDuration(durationOf(session)) },
        { heading: 'EXIT', value: endOf, essential: true },
        { heading: 'RUN-AS', value: (session) => session.runAs, spare: true },
        { heading: 'COMMAND', value: (session) => session.command ?? session.shell, spare: true },
        { heading: 'SIZE', value: (session) => showBytes(session.recordingBytes) },
      ],
    })
  }
}

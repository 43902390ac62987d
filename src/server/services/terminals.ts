import type { Readable } from 'node:stream'
import { invalid, RsmError } from '../../core/errors.ts'
import { type Terminal } from '../../core/protocol/http/terminals.ts'
import type { TerminalService } from '../../core/services.ts'
import { longestCommandShown } from '../../core/terminals/terminal.ts'
import { unknownName } from '../../core/text/nearest.ts'
import { shortened } from '../../core/text/pieces.ts'
import { opaqueId } from '../storage/ids.ts'
import { pageOf, slicePage, storePage } from '../storage/paging.ts'
import { refusal, type UserCaller } from '../storage/ports/caller.ts'
import type { TerminalRecord } from '../storage/records/terminal.ts'
import { howEnded } from '../terminals/terminal-end.ts'
import { type Context, type ForCallers, notFound } from './context.ts'

const pathOf = (sessionId: string) => `/ws/terminal/${sessionId}`

/** Whether this caller may see a session at all: one's own, or anyone's for an ADMIN (contract §2). */
function maySee(caller: UserCaller, record: Pick<TerminalRecord, 'userId'>): boolean {
  return caller.role === 'ADMIN' || record.userId === caller.id
}

export interface ServerTerminals extends ForCallers<TerminalService> {
  /**
   * The recording of a session; of one's own that is open, as far as it stands. Errors: `not_found` for a session that was
   * not recorded, `conflict` for another user's that is open, `gone` for a recording that is kept no longer.
   */
  recording(caller: UserCaller, sessionId: string): Promise<Readable>
}

export function createTerminalService(context: Context): ServerTerminals {
  const { store, terminals, tickets, presence, recordings, clock } = context

  /** What has ended is as it was written down, and no server is asked for it. */
  const live = async (found: Readonly<TerminalRecord>) =>
    found.status === 'CLOSED'
      ? { record: found, watchers: [], recordingBytes: found.recordingBytes }
      : (await terminals.site(found.id)).live(found)

  async function toApi(found: Readonly<TerminalRecord>): Promise<Terminal> {
    const { record, watchers, recordingBytes } = await live(found)
    const { id: sessionId, hostId, hostname, user, status, cols, rows, runAs, shell, recorded } = record
    const { startedAt, endedAt, exitCode, signal, reason } = record
    const command = record.command === null ? null : shortened(record.command, longestCommandShown)
    const what = { sessionId, hostId, hostname, user, status, cols, rows, runAs, shell, command }
    const end = { startedAt, endedAt, exitCode, signal, reason }
    return { ...what, ...end, recorded, recordingBytes, watchers: [...watchers] }
  }

  async function find(caller: UserCaller, sessionId: string): Promise<TerminalRecord> {
    const record = await store.get('terminals', sessionId)
    if (!record || !maySee(caller, record)) throw notFound('terminal session', sessionId)
    return record
  }

  const how = (record: TerminalRecord) => (record.status === 'CLOSED' ? `: ${howEnded(record)}` : '')

  const issue = async (caller: UserCaller, sessionId: string, watch: boolean) => ({
    ...(await tickets.issue({ sessionId, caller, watch })),
    path: pathOf(sessionId),
  })

  return {
    async list(caller, query) {
      const { status, hostId, user, recorded } = query
      const userId = caller.role === 'ADMIN' ? undefined : caller.id
      const equals = { status, hostId, user: user?.toLowerCase(), recorded, userId }
      const sought = { where: { equals }, order: 'desc' } as const
      if (status !== 'OPEN')
        return storePage(store, 'terminals', query, sought, (items) => Promise.all(items.map(toApi)))
      // There are few, and the end of one may still be on its way to the store.
      const all = await Promise.all((await store.query('terminals', sought)).items.map(toApi))
      const open = all.filter((terminal) => terminal.status === 'OPEN')
      return pageOf(slicePage(open, query), open.length, query)
    },
    get: async (caller, sessionId) => toApi(await find(caller, sessionId)),
    async create(caller, input) {
      const { hostId, cols, rows, runAs = null, shell = null, term = null, command = null } = input
      const { noStdin = false, trueColor = false } = input
      if (noStdin && command === null)
        throw invalid([
          { field: 'noStdin', message: 'is for a command: a shell without stdin has nothing to do' },
        ])
      const host = await store.get('hosts', hostId)
      if (!host) throw invalid([{ field: 'hostId', message: unknownName('host', String(hostId), []) }])
      const [view] = await presence.views([hostId])
      if (view?.status === 'OFFLINE')
        throw new RsmError('conflict', `${host.hostname} is OFFLINE: ${view.statusReason ?? 'not heard of'}`)
      const sessionId = opaqueId(clock.now())
      await terminals.open({
        record: {
          id: sessionId,
          hostId,
          user: caller.username,
          userId: caller.id,
          tokenId: caller.tokenId,
          status: 'OPEN',
          cols,
          rows,
          runAs,
          shell,
          term,
          ...(trueColor ? { trueColor } : {}),
          command,
          noStdin,
          startedAt: context.time(),
          endedAt: null,
          exitCode: null,
          signal: null,
          reason: null,
          recordingBytes: 0,
        },
        caller,
      })
      return { sessionId, ...(await issue(caller, sessionId, false)) }
    },
    async ticket(caller, sessionId, { watch = false }) {
      const record = await find(caller, sessionId)
      if (watch && caller.role !== 'ADMIN')
        throw refusal(caller, 'to watch a session requires the role ADMIN')
      if (!watch && record.userId !== caller.id)
        throw new RsmError('forbidden', `This is a session of ${record.user}: an ADMIN may read along`)
      // One that has ended may still have to tell its client the rest.
      if (!(await (await terminals.site(sessionId)).isAttachable(sessionId)))
        throw new RsmError('conflict', `Terminal session ${sessionId} has ended${how(record)}`)
      return issue(caller, sessionId, watch)
    },
    async remove(caller, sessionId) {
      await find(caller, sessionId)
      await (await terminals.site(sessionId)).end(sessionId, `ended by ${caller.username}`)
      return { sessionId }
    },
    async recording(caller, sessionId) {
      const { record, recordingBytes } = await live(await find(caller, sessionId))
      if (!record.recorded) throw new RsmError('not_found', `Terminal session ${sessionId} was not recorded`)
      // Its user is told of those who watch, and would not be told of this.
      if (record.status === 'OPEN' && record.userId !== caller.id)
        throw new RsmError(
          'conflict',
          `Terminal session ${sessionId} of ${record.user} is open; its recording is available once it has ended. To watch it: rsm terminal --watch ${sessionId}`,
        )
      return recordings.read(sessionId, recordingBytes)
    },
  }
}

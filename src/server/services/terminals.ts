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

/** Whether this caller may see a session: one's own, or any for an ADMIN (contract §2). */
function maySee(caller: UserCaller, record: Pick<TerminalRecord, 'userId'>): boolean {
  return caller.role === 'ADMIN' || record.userId === caller.id
}

export interface ServerTerminals extends ForCallers<TerminalService> {
  /**
   * Recording of a session, or the part so far of one's own open session. Errors: `not_found` if it was not recorded,
   * `conflict` for another user's open session, `gone` if the recording is no longer kept.
   */
  recording(caller: UserCaller, sessionId: string): Promise<Readable>
}

export function createTerminalService(context: Context): ServerTerminals {
  const { store, terminals, tickets, presence, recordings, clock } = context

  /** Current state of a session; a closed one is in the store, so no other server is asked. */
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
      // Read all: there are few, and one that just ended may still be OPEN in the store.
      const all = await Promise.all((await store.query('terminals', sought)).items.map(toApi))
      const open = all.filter((terminal) => terminal.status === 'OPEN')
      return pageOf(slicePage(open, query), open.length, query)
    },
    get: async (caller, sessionId) => toApi(await find(caller, sessionId)),
    async create(caller, input) {
      const { hostId, cols, rows, runAs = null, shell = null, term = null, command = null } = input
      const { noStdin = false, trueColor = false } = input
      if (noStdin && command === null)
        throw invalid([{ field: 'noStdin', message: 'requires a command: a shell without stdin is useless' }])
      const host = await store.get('hosts', hostId)
      if (!host) throw invalid([{ field: 'hostId', message: unknownName('host', String(hostId), []) }])
      const [view] = await presence.views([hostId])
      if (view?.status === 'OFFLINE')
        throw new RsmError('conflict', `${host.hostname} is OFFLINE: ${view.statusReason ?? 'no contact'}`)
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
        throw refusal(caller, 'watching a session requires the role ADMIN')
      if (!watch && record.userId !== caller.id)
        throw new RsmError('forbidden', `This session belongs to ${record.user}: only an ADMIN may watch it`)
      // An ended session may still have output for its client.
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
      // Its user sees watchers, but would not see this.
      if (record.status === 'OPEN' && record.userId !== caller.id)
        throw new RsmError(
          'conflict',
          `Terminal session ${sessionId} of ${record.user} is open; its recording is available once it has ended. To watch it: rsm terminal --watch ${sessionId}`,
        )
      return recordings.read(sessionId, recordingBytes)
    },
  }
}

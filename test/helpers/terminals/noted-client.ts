import type { UserCaller } from '../../../src/server/storage/ports/caller.ts'
import type { TerminalClient } from '../../../src/server/storage/ports/terminals.ts'

/** A client of a terminal that only records its calls; `tokenId` 1 of user 1, an ADMIN. */
export function notedClient(username = 'admin') {
  const heard: string[] = []
  const caller: UserCaller = {
    type: 'user',
    id: 1,
    username,
    role: 'ADMIN',
    tokenId: 1,
    ownerRole: 'ADMIN',
    rights: [],
    mayOutlast: true,
    tokenKind: 'session',
    expiresAt: Number.POSITIVE_INFINITY,
    idleAt: Number.POSITIVE_INFINITY,
  }
  const client: TerminalClient = {
    caller,
    ip: null,
    acknowledges: true,
    output(sequence, json, written) {
      heard.push(`output ${sequence} ${Buffer.from(json).toString()}`)
      written()
    },
    notify: ({ kind }) => void heard.push(kind),
    send: (type) => void heard.push(type),
    close: (code, reason) => void heard.push(`closed ${code} ${reason}`),
    pause: () => void heard.push('held'),
    resume: () => void heard.push('released'),
  }
  return { client, heard, caller }
}

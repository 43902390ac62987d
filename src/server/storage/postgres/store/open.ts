import type { Id } from '../../records/records.ts'
import type { Ask } from '../connection/database.ts'
import type { Ids } from './ids.ts'
import type { Seen } from './seen.ts'
import type { StoredNoun } from './tables.ts'

/** Records that a transaction has changed in PostgreSQL, and the number that it has there. */
export interface Sent {
  xid: string | null
  readonly changed: { noun: StoredNoun; id: Id }[]
}

/** One transaction of PostgreSQL, while it runs. */
export interface Open {
  readonly ask: Ask
  readonly ids: Ids
  readonly sent: Sent
  readonly seen: Seen
}

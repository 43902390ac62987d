import { RsmError } from '../../core/errors.ts'
import type { Keep } from '../seams/keep.ts'

/** What is done with the tools of PostgreSQL. `address`: of the store, for people. */
export function createKeep(address: string): Keep {
  const refuse = (what: string, hint: string) =>
    Promise.reject(new RsmError('conflict', `the store of this server is ${address}: ${what}`, { hint }))
  return {
    backup: () =>
      refuse(
        'it is backed up with the tools of PostgreSQL',
        'use pg_basebackup, or pg_dump -Fc, and keep a copy of the keys apart from it',
      ),
    compact: () =>
      refuse('there is nothing to compact', 'PostgreSQL does that by itself; see its autovacuum'),
  }
}

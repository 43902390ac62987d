import { type Clock, isoTime } from '../../clock.ts'
import type { Keep } from '../../seams/keep.ts'
import { serverVersion } from '../../version.ts'
import type { JsonStore } from '../store/store.ts'
import { makeBackup } from './backup.ts'

interface Parts {
  readonly directory: string
  readonly keysDirectory: string
  readonly store: Pick<JsonStore, 'hold' | 'compact'>
  readonly clock: Clock
}

export function createKeep({ directory, keysDirectory, store, clock }: Parts): Keep {
  return {
    backup: (options) =>
      makeBackup(
        {
          directory,
          keysDirectory,
          version: serverVersion(),
          createdAt: isoTime(clock.now()),
          hold: () => store.hold(),
        },
        options,
      ),
    compact: () => store.compact(),
  }
}

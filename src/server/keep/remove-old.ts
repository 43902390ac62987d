import type { OldData } from '../../core/protocol/control.ts'
import type { Retention } from '../housekeeping/retention.ts'
import type { TerminalRetention } from '../terminals/retention.ts'
import type { Turn } from './turn.ts'

interface Parts {
  readonly retention: Retention
  readonly oldTerminals: TerminalRetention
  readonly turn: Turn
}

/** Says what is past its time or too much, and removes it unless that is only asked. */
export type RemoveOld = (options: { dryRun: boolean }) => Promise<OldData>

export function createRemoval({ retention, oldTerminals, turn }: Parts): RemoveOld {
  return async ({ dryRun }) => {
    const end = dryRun ? () => undefined : await turn.take('the removal of old data')
    try {
      const plan = await retention.plan()
      const sessions = await oldTerminals.plan()
      const limits = {
        taskRetention: retention.days,
        recordingRetention: oldTerminals.days,
        maxOutputBytes: retention.maxOutputBytes,
      }
      if (!dryRun) {
        await retention.sweep()
        await oldTerminals.sweep()
      }
      return { ...limits, ...plan, terminals: sessions, removed: !dryRun }
    } finally {
      end()
    }
  }
}

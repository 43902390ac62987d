import { setTimeout as pause } from 'node:timers/promises'
import { openConnection } from '../../net/connect.ts'
import { openRequests } from '../../net/request.ts'
import { endProcess } from '../processes/machine.ts'
import { isOnline, runningState } from '../reports/status-file.ts'
import { confirm, readState, releasesIn, undo } from './installed.ts'
import type { UpgradeOrder } from './order.ts'

/** Seconds without a link while the server answers, before a rollback (contract §10). */
const linkWithin = 60
const pollInterval = 250
/** Milliseconds between checks of the server, and for its answer. */
const askEvery = 5_000

/** Checks repeatedly whether the server answers at all, whatever the status. */
function watchServer(order: UpgradeOrder): { readonly answers: () => boolean; readonly stop: () => void } {
  const connection = openConnection(order)
  const send = openRequests(connection, () => new Error('no answer'), { answer: askEvery })
  let answers = false
  const ask = () =>
    send({ method: 'GET', path: '/api/health', headers: {} }).then(
      ({ body }) => {
        body.destroy()
        answers = true
      },
      () => {
        answers = false
      },
    )
  void ask()
  const asking = setInterval(() => void ask(), askEvery)
  return {
    answers: () => answers,
    stop() {
      clearInterval(asking)
      connection.agent.destroy()
    },
  }
}

/**
 * Resolves when the new version is linked. Otherwise it rolls back, waits until the previous version is
 * linked or had time to, and rejects with a sentence starting with "rolled back: ".
 */
export async function watchOver(order: UpgradeOrder, version: string): Promise<void> {
  const { dataDir, taskId } = order
  const releases = releasesIn(dataDir)
  const server = watchServer(order)
  let checkedAt = performance.now()
  let missing = 0
  try {
    for (;;) {
      const now = performance.now()
      // Do not count the time that the host was suspended.
      if (server.answers()) missing += Math.min(1_000, now - checkedAt)
      checkedAt = now
      const state = readState(releases)
      const running = runningState(dataDir)
      const isLinked = running !== null && isOnline(running)
      if (isLinked && running.version === version) return await confirm(releases, version)
      if (state?.undone?.taskId === taskId) {
        if (!isLinked && missing < 2 * linkWithin * 1000) {
          await pause(pollInterval)
          continue
        }
        const rest = isLinked ? '' : '; the previous version is not linked either'
        throw new Error(`rolled back: ${state.undone.reason}${rest}`)
      }
      if (missing > linkWithin * 1000) {
        await undo(releases, `${version} was not linked within ${linkWithin} s, though the server answers`)
        // Its supervisor then starts the previous version.
        if (state?.trial?.process) await endProcess(state.trial.process)
        missing = linkWithin * 1000
      }
      await pause(pollInterval)
    }
  } finally {
    server.stop()
  }
}

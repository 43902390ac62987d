import { type Examination, gather } from '../../../../core/checks/examine-host.ts'
import { type CheckResult, finding } from '../../../../core/checks/finding.ts'
import type { ProcessStatus } from '../../../../core/protocol/control.ts'
import { cutUpgrade } from '../../../../disk/upgrade-traces.ts'
import { lastWritten } from '../agreed-clock.ts'
import { lookAtAudit, lookAtClockFile, lookAtFiles } from './files.ts'
import { lookAtDirectory, lookAtDisk, lookAtOrphans, lookAtPermissions } from './place.ts'
import { judgeClock, judgeNode, judgeRunning, lookAtPort } from './process.ts'
import { lookAtKeys, lookAtStore } from './store.ts'

/** package.json, `engines`. */
const oldestNode = [20, 18] as const

export interface Examined {
  readonly path: string
  readonly keysDirectory: string
  /** What the server on it says of itself; null where none runs. */
  readonly running: ProcessStatus | null
  /** Where no server runs: why its directory could not be locked, and where one would listen. */
  readonly locked: Error | null
  readonly host: string
  readonly port: number
  readonly version: string
  /** Milliseconds since 1970. */
  readonly now: number
}

function judgeLock({ running, locked }: Examined): CheckResult {
  if (running !== null || locked === null) return null
  const todo = 'a server whose control socket does not answer hangs, or is of another version: restart it'
  return [finding('lock', 'error', locked.message, todo)]
}

function judgeUpgrade({ path, running }: Examined): CheckResult {
  const cut = running === null ? cutUpgrade(path) : null
  return cut && [finding('upgrade', 'error', cut.message, cut.advice)]
}

/** What is the matter with the data of a server and with its machine; everything is read, nothing is changed. */
export async function examineData(examined: Examined): Promise<Examination> {
  const { path, keysDirectory, running, host, port, version, now } = examined
  const node = judgeNode(process.versions.node, oldestNode)
  const place = await lookAtDirectory(path)
  if (place !== null) return gather([place, node])
  const store = await lookAtStore(path, running !== null)
  return gather([
    running === null ? await lookAtPort(host, port) : judgeRunning(running, version),
    judgeLock(examined),
    judgeUpgrade(examined),
    store.look,
    await lookAtKeys(keysDirectory, store.tables),
    await lookAtPermissions(path, keysDirectory),
    await lookAtDisk(path),
    judgeClock(await lastWritten(path), now),
    await lookAtClockFile(path),
    await lookAtAudit(path),
    store.tables === null ? null : await lookAtFiles(path, store.tables),
    await lookAtOrphans(path),
    node,
  ])
}

import { type Examination, gather } from '../../../../core/checks/examine-host.ts'
import { type CheckResult, finding } from '../../../../core/checks/finding.ts'
import type { ProcessStatus } from '../../../../core/protocol/control.ts'
import { cutUpgrade } from '../../../../disk/upgrade-traces.ts'
import { lastWritten } from '../agreed-clock.ts'
import { checkAudit, checkClockFile, checkFiles } from './files.ts'
import { checkDirectory, checkDisk, checkOrphans, checkPermissions } from './place.ts'
import { checkPort, judgeClock, judgeNode, judgeRunning } from './process.ts'
import { checkKeys, checkStore } from './store.ts'

/** As `engines` in package.json. */
const oldestNode = [20, 18] as const

export interface Examined {
  readonly path: string
  readonly keysDirectory: string
  /** Status that the running server reports; null if none runs. */
  readonly running: ProcessStatus | null
  /** If no server runs: why its directory could not be locked, and where one would listen. */
  readonly locked: Error | null
  readonly host: string
  readonly port: number
  readonly version: string
  /** Milliseconds since 1970. */
  readonly now: number
}

function judgeLock({ running, locked }: Examined): CheckResult {
  if (running !== null || locked === null) return null
  const todo =
    'the control socket of the server does not answer, so it hangs or has another version: restart it'
  return [finding('lock', 'error', locked.message, todo)]
}

function judgeUpgrade({ path, running }: Examined): CheckResult {
  const cut = running === null ? cutUpgrade(path) : null
  return cut && [finding('upgrade', 'error', cut.message, cut.advice)]
}

/** Examines the data of a server and its machine, without changes. */
export async function examineData(examined: Examined): Promise<Examination> {
  const { path, keysDirectory, running, host, port, version, now } = examined
  const node = judgeNode(process.versions.node, oldestNode)
  const place = await checkDirectory(path)
  if (place !== null) return gather([place, node])
  const store = await checkStore(path, running !== null)
  return gather([
    running === null ? await checkPort(host, port) : judgeRunning(running, version),
    judgeLock(examined),
    judgeUpgrade(examined),
    store.result,
    await checkKeys(keysDirectory, store.tables),
    await checkPermissions(path, keysDirectory),
    await checkDisk(path),
    judgeClock(await lastWritten(path), now),
    await checkClockFile(path),
    await checkAudit(path),
    store.tables === null ? null : await checkFiles(path, store.tables),
    await checkOrphans(path),
    node,
  ])
}

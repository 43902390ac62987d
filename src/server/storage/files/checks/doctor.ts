import { readdir, readFile, readlink } from 'node:fs/promises'
import { createServer } from 'node:net'
import { type Examination, gather } from '../../../../core/checks/examine-host.ts'
import { type CheckResult, type Finding, finding } from '../../../../core/checks/finding.ts'
import { doubtSentence } from '../../../../core/clock/agreed-time.ts'
import type { ProcessStatus } from '../../../../core/protocol/control.ts'
import { cutUpgrade } from '../../../../disk/upgrade-traces.ts'
import { lastWritten } from '../agreed-clock.ts'
import { checkAudit, checkClockFile, checkFiles, checkKeys, checkStore } from './contents.ts'
import { checkDirectory, checkDisk, checkOrphans, checkPermissions } from './place.ts'

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

/** Judges a running server by its own status; `version` is that of the program that asks. */
function judgeRunning(status: ProcessStatus, version: string): CheckResult {
  const findings: Finding[] = []
  const { readOnly, auditRefused, restore, clock } = status
  if (readOnly !== null)
    findings.push(
      finding('writes', 'error', `it refuses writes: ${readOnly}`, 'look at its disk and its log'),
    )
  if (auditRefused !== null)
    findings.push(
      finding(
        'writes',
        'error',
        `its audit log refuses entries: ${auditRefused}`,
        'look at its disk and its log',
      ),
    )
  if (restore !== null)
    findings.push(
      finding(
        'restored',
        'warning',
        restore.executions === 0
          ? `it was restored from a backup and holds no executions: ${restore.reason}`
          : `it holds ${restore.executions} executions, which may have run since: ${restore.reason}`,
        restore.executions === 0
          ? 'schedules and earlier webhook deliveries resume after `rsm server confirm-restore`'
          : '`rsm server confirm-restore`, or with --cancel-pending',
      ),
    )
  if (clock !== null)
    findings.push(
      finding(
        'clock-jumped',
        'warning',
        doubtSentence(clock),
        'set it right; if it is: `rsm server confirm-clock`',
      ),
    )
  if (status.version !== version)
    findings.push(
      finding('version', 'warning', `it is ${status.version}, this rsm ${version}`, 'restart the server'),
    )
  return findings.length > 0 ? findings : `it runs (pid ${status.pid}, ${status.version})`
}

async function checkPort(host: string, port: number): Promise<CheckResult> {
  const error = await listenError(host, port)
  if (error === null) return port === 0 ? null : `port ${port} of ${host} is free`
  if (error.code !== 'EADDRINUSE')
    return [
      finding(
        'port',
        'error',
        `no server can listen on ${host} port ${port}: ${error.message}`,
        'choose another with --host and --port of `rsm server start`',
      ),
    ]
  const by = (await holderOfPort(port)) ?? 'another process'
  const todo = `stop it, or choose another port: \`rsm server start --port PORT\`; \`ss -ltnp 'sport = :${port}'\` shows it`
  return [finding('port', 'error', `port ${port} of ${host} is in use by ${by}`, todo)]
}

function listenError(host: string, port: number): Promise<NodeJS.ErrnoException | null> {
  return new Promise((resolve) => {
    const server = createServer()
    server.once('error', resolve)
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)))
  })
}

/**
 * Names the process that listens there, as `nginx (pid 812)`; null without permission, because only root sees
 * other users' processes.
 */
async function holderOfPort(port: number): Promise<string | null> {
  const wanted = new Set((await socketsOn(port)).map((inode) => `socket:[${inode}]`))
  if (wanted.size === 0) return null
  for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name)))
    for (const descriptor of await readdir(`/proc/${pid}/fd`).catch(() => [])) {
      const target = await readlink(`/proc/${pid}/fd/${descriptor}`).catch(() => '')
      if (!wanted.has(target)) continue
      const name = await readFile(`/proc/${pid}/comm`, 'utf8').catch(() => '')
      return `${name.trim()} (pid ${pid})`
    }
  return null
}

/** State LISTEN in proc(5). */
const listenState = '0A'

/** Inodes of the sockets that listen on a port of this machine (proc(5)). */
async function socketsOn(port: number): Promise<string[]> {
  const wanted = port.toString(16).toUpperCase().padStart(4, '0')
  const found: string[] = []
  for (const table of ['/proc/net/tcp', '/proc/net/tcp6']) {
    const text = await readFile(table, 'utf8').catch(() => '')
    for (const line of text.split('\n').slice(1)) {
      const [, local = '', , state, , , , , , inode = ''] = line.trim().split(/\s+/)
      if (state === listenState && local.endsWith(`:${wanted}`)) found.push(inode)
    }
  }
  return found
}

/** `newest`: when the data was last written, in milliseconds since 1970, like `now`. */
export function judgeClock(newest: number | null, now: number): CheckResult {
  const hour = 3_600_000
  if (newest === null || newest - now < hour) return 'its clock is not behind its data'
  const message = `the clock shows ${new Date(now).toISOString()}, but its data was written at ${new Date(newest).toISOString()}`
  return [finding('clock', 'error', message, 'set the clock right before the server starts: `timedatectl`')]
}

/**
 * Judges the Node of this program, which starts servers too; `oldest` is the minimum that the package allows.
 */
export function judgeNode(version: string, oldest: readonly [number, number]): CheckResult {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const isOld = major < oldest[0] || (major === oldest[0] && minor < oldest[1])
  if (!isOld) return `Node is ${version}`
  return [
    finding(
      'software',
      'error',
      `Node is ${version}; rsm needs ${oldest.join('.')} or newer`,
      'install a newer Node',
    ),
  ]
}

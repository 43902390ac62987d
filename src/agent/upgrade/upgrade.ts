import { execFile } from 'node:child_process'
import { type FileHandle, mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'
import { RsmError } from '../../core/errors.ts'
import { compareVersions, type ReleaseSignature, versionPattern } from '../../core/release.ts'
import { lockFile } from '../../disk/data-directory.ts'
import { sha256OfFile } from '../../disk/digest.ts'
import { isDiskFull, replaceDurably, syncDirectory } from '../../disk/durable.ts'
import { packageManagerOf, signedRelease, writeExecutable } from '../../disk/new-release.ts'
import { ownReleaseKey } from '../../disk/own-release.ts'
import { openConnection, reasonOf } from '../../net/connect.ts'
import { openRequests } from '../../net/request.ts'
import { receive } from '../files/receive.ts'
import { readIdentity } from '../link/identity.ts'
import { allowsExec } from '../processes/file-systems.ts'
import { isAlive } from '../processes/machine.ts'
import { agentVersion } from '../reports/facts.ts'
import { runningState } from '../reports/status-file.ts'
import {
  directoryOf,
  executableOf,
  type Installed,
  link,
  linkedVersion,
  lockName,
  prune,
  readState,
  releasesIn,
  undo,
  writeState,
} from './installed.ts'
import { noteFailure, noteSwap, readOrder, type UpgradeOrder } from './order.ts'
import { watchOver } from './watch-over.ts'

const run = promisify(execFile)
/** Milliseconds for a program to answer. */
const patience = 60_000
const pollInterval = 250
/** Milliseconds between requests to the agent to give way. */
const askEvery = 2_000
/** Bytes. The release signature does not cover the size; an executable has 120 MB. */
const maxBytes = 1024 ** 3

const print = (text: string) => process.stdout.write(`${text}\n`)

/** Whether this is a downgrade; between equal numbers, any suffix counts as one. */
function isBack(version: string, from: string): boolean {
  const compared = compareVersions(version, from)
  if (compared === null || compared.isOlder) return true
  return !compared.isNewer && !(/[-+]/.test(from) && !/[-+]/.test(version))
}

interface Wanted {
  /** Name under `/dl`. */
  readonly name: string
  readonly size: number
  readonly sha256: string
}

type Signed = ReleaseSignature & Wanted

/** The order's build for this machine, if the release key signed it. Throws if anything is invalid. */
function signedBuild({ upgrade }: UpgradeOrder, own: string): Signed {
  const { version, builds, allowDowngrade = false } = upgrade
  const key = ownReleaseKey()
  if (key === null)
    throw new Error(
      `rsm ${own} on this host cannot be upgraded: it was built without a release key. Install a release that has one`,
    )
  if (!versionPattern.test(version)) throw new Error('the order has no version')
  const build = builds.find(({ arch }) => arch === process.arch)
  if (build === undefined)
    throw new Error(
      `the server has no signed rsm ${version} for ${process.arch}; on its machine: rsm server releases add rsm-linux-${process.arch}`,
    )
  const release = signedRelease(key, { ...build, version, os: 'linux' }, build.sha256)
  if (typeof release === 'string')
    throw new Error(`rsm ${version} is not signed by the release key of rsm ${own} on this host`)
  if (isBack(version, own) && !allowDowngrade)
    throw new Error(`${version} is a downgrade from ${own}: add --allow-downgrade`)
  return { ...release, name: `rsm-linux-${release.arch}`, size: build.size }
}

/** Upgrade command for rsm installed by a package manager; null otherwise. */
export async function packageAdvice(file: string): Promise<string | null> {
  const manager = await packageManagerOf(file)
  if (manager === 'dpkg') return 'apt-get install ./rsm_VERSION_ARCH.deb'
  return manager === 'rpm' ? 'dnf install ./rsm-VERSION.ARCH.rpm' : null
}

/** Downloads and verifies the executable; does not run it yet. */
async function fetch(releases: string, order: UpgradeOrder, build: Signed): Promise<string> {
  const { version, sha256 } = build
  await prune(releases, [version])
  const path = executableOf(releases, version)
  if ((await sha256OfFile(path).catch(() => null)) === sha256) return path
  const directory = directoryOf(releases, version)
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const draft = join(directory, 'download')
  await rm(draft, { force: true })
  print(`downloading ${build.name} (${build.size} bytes) of rsm ${version}`)
  await download(order, build, draft)
  await replaceDurably(draft, path)
  await syncDirectory(releases)
  return path
}

/**
 * Downloads an executable over the agent's connection to the server, resuming after an interruption. Rejects
 * with a sentence; an incomplete or wrong file is removed.
 */
export async function download(order: UpgradeOrder, wanted: Wanted, path: string): Promise<void> {
  const { name, size, sha256 } = wanted
  if (size > maxBytes) throw new Error(`${name} has ${size} bytes: more than 1 GiB, the limit`)
  const connection = openConnection(order)
  const send = openRequests(connection, (error) => new Error(reasonOf(error)))
  const absent = 'it has no such file, or does not use TLS'
  // The server reserves slots for agents that send their token; the download itself needs none.
  const identity = await readIdentity(order.dataDir).catch(() => null)
  const token = identity?.registration?.token
  const headers: Record<string, string> = token === undefined ? {} : { authorization: `Bearer ${token}` }
  const source = { path: `/dl/${name}`, headers, name, size, absent, timeout: order.timeout }
  try {
    const found = await writeExecutable(receive(send, source), path, 0o700)
    if (found !== sha256) throw new Error(`the received data has sha256 ${found}, not ${sha256} as signed`)
  } catch (error) {
    await rm(path, { force: true })
    if (isDiskFull(error)) throw new Error(`no room for ${size} bytes in ${path}`, { cause: error })
    throw error
  } finally {
    connection.agent.destroy()
  }
}

async function selftest(path: string, version: string): Promise<void> {
  const env = { PATH: process.env['PATH'], HOME: process.env['HOME'], LANG: process.env['LANG'] }
  const { stdout } = await run(path, ['agent', 'selftest'], { env, timeout: patience }).catch(
    (error: Error & { stderr?: string }) => {
      throw new Error(`rsm ${version} does not work on this host: ${error.stderr?.trim() || error.message}`)
    },
  )
  if (!stdout.startsWith(`rsm ${version} `))
    throw new Error(
      `the executable signed as rsm ${version} calls itself ${JSON.stringify(stdout.slice(0, 60))}`,
    )
}

/** From here on, the agent's next start runs the new version. */
async function swap(order: UpgradeOrder, { version, sha256 }: Installed, own: string): Promise<void> {
  const releases = releasesIn(order.dataDir)
  const state = readState(releases)
  const linked = linkedVersion(releases)
  const known = [state?.current, state?.former].find((each) => each?.version === linked) ?? null
  await writeState(releases, {
    base: linked === null ? own : (state?.base ?? own),
    current: { version, sha256 },
    former: linked === null ? null : known,
    trial: { taskId: order.taskId, starts: 0, process: null },
    undone: null,
  })
  await link(releases, version)
}

/** An upgrade never closes terminals. */
async function untilNoTerminals({ dataDir, timeout }: UpgradeOrder): Promise<void> {
  const deadline = performance.now() + timeout * 1000
  let reported = 0
  for (;;) {
    const open = runningState(dataDir)?.terminals ?? 0
    if (open === 0) return
    if (open !== reported) print(`waiting for ${open} open ${open === 1 ? 'terminal' : 'terminals'}`)
    reported = open
    if (timeout > 0 && performance.now() > deadline)
      throw new Error(`terminals were open for ${timeout} s: nothing was changed`)
    await pause(pollInterval)
  }
}

/** Asks the agent to stop once it has no terminals. A later agent in the same process has another version. */
async function untilGivenWay({ agent, dataDir }: UpgradeOrder, own: string): Promise<void> {
  const isThere = () => {
    const running = runningState(dataDir)
    return running?.startTime === agent.startTime && running.version === own && isAlive(agent)
  }
  for (let waited = 0; isThere(); waited += pollInterval) {
    if (waited > patience) throw new Error('the agent did not stop: its terminals are in use')
    if (waited % askEvery === 0) process.kill(agent.pid, 'SIGUSR2')
    await pause(pollInterval)
  }
}

/** Concurrent upgrades would undo each other. The lock ends with the returned handle or this process. */
async function lockReleases(releases: string): Promise<FileHandle> {
  await mkdir(releases, { recursive: true, mode: 0o700 })
  return lockFile(join(releases, lockName), 'releases/').catch((error: unknown) => {
    if (!(error instanceof RsmError) || error.code !== 'conflict') throw error
    throw new Error('another upgrade of this host is in progress')
  })
}

async function carryOut(order: UpgradeOrder, directory: string): Promise<string> {
  const own = agentVersion()
  const { version } = order.upgrade
  if (version === own) return `rsm ${version} runs here already`
  const releases = releasesIn(order.dataDir)
  const build = signedBuild(order, own)
  const advice = await packageAdvice(order.installed)
  if (advice !== null) throw new Error(`this rsm was installed from a package; upgrade it with: ${advice}`)
  const lock = await lockReleases(releases)
  try {
    await become(order, directory, build, own)
  } finally {
    await lock.close()
  }
  return `rsm ${version} is linked, in place of ${own}`
}

async function become(order: UpgradeOrder, directory: string, build: Signed, own: string): Promise<void> {
  const releases = releasesIn(order.dataDir)
  const { version } = build
  if (!allowsExec(releases))
    throw new Error(
      `${releases} is mounted noexec, and the agent runs from there after an upgrade: remount it with exec`,
    )
  const path = await fetch(releases, order, build)
  await selftest(path, version)
  await untilNoTerminals(order)
  print(`rsm ${version} works on this host; the agent restarts`)
  noteSwap(directory)
  await swap(order, build, own)
  try {
    await untilGivenWay(order, own)
  } catch (error) {
    await undo(releases, 'the agent did not stop')
    throw error
  }
  try {
    await watchOver(order, version)
  } finally {
    await prune(releases)
  }
}

function sentenceOf(error: unknown): string {
  if (isDiskFull(error)) return "no room in the agent's data directory"
  return error instanceof Error ? error.message : String(error)
}

/** Runs the order in this execution directory; the exit code tells whether the new version runs. */
export async function upgradeAgent(directory: string): Promise<void> {
  process.title = 'rsm-agent-upgrade'
  const order = readOrder(directory)
  try {
    print(await carryOut(order, directory))
  } catch (error) {
    const sentence = sentenceOf(error)
    process.stderr.write(`${sentence}\n`)
    noteFailure(directory, sentence)
    process.exitCode = 1
  }
}

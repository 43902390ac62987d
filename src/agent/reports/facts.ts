import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import os from 'node:os'
import { promisify } from 'node:util'
import type { RegisterRequest, SystemFacts } from '../../core/protocol/http/agent.ts'
import { ownPackage } from '../../disk/own-files.ts'
import type { Clock } from '../clock.ts'
import { ownProcess } from '../processes/programs.ts'

const run = promisify(execFile)
/** Milliseconds; a hung mount must not keep an agent from registering. */
const longest = 10_000

export const agentVersion = (): string => ownPackage().version

/**
 * Disk size in GB, as measured by systeminformation; 0 if unknown. Uses a child process, because its 12 MB
 * would stay with the agent forever; Node provides the other facts cheaply.
 */
export async function diskSize(patience = longest): Promise<number> {
  const { file, argv } = ownProcess('__facts')
  try {
    const { stdout } = await run(file, argv, { timeout: patience })
    return Math.round(Number(stdout) / 1024 ** 3)
  } catch {
    return 0
  }
}

/** Caches the size for an hour, because each count starts a process. */
export function diskSizeHourly(clock: Clock, count: () => Promise<number> = diskSize): () => Promise<number> {
  let counted = { at: Number.NEGATIVE_INFINITY, size: Promise.resolve(0) }
  return () => {
    const at = clock.monotonic()
    if (at - counted.at >= 3_600_000) counted = { at, size: count() }
    return counted.size
  }
}

/** PRETTY_NAME of the host's os-release(5); null if absent. */
async function distribution(): Promise<string | null> {
  for (const path of ['/etc/os-release', '/usr/lib/os-release']) {
    const text = await readFile(path, 'utf8').catch(() => '')
    const name = /^PRETTY_NAME=(["']?)(.+)\1$/m.exec(text)?.[2]
    if (name !== undefined) return name.slice(0, 256)
  }
  return null
}

/** The current facts of the host; without the size of its disks if that cannot be counted. */
export async function systemFacts(diskGB: () => Promise<number> = diskSize): Promise<SystemFacts> {
  const addresses = Object.values(os.networkInterfaces()).flatMap((list) => list ?? [])
  const outside = addresses.filter((address) => !address.internal && !address.address.startsWith('fe80:'))
  const [pretty, size] = await Promise.all([distribution(), diskGB()])
  return {
    // IPv4 first: the server shows the first one as the host's address.
    ipAddresses: outside
      .sort((a, b) => a.family.localeCompare(b.family))
      .map((address) => address.address)
      .slice(0, 256),
    os: process.platform,
    ...(pretty === null ? {} : { distribution: pretty }),
    kernel: os.release(),
    arch: os.arch(),
    cpuCores: os.cpus().length,
    memoryMB: Math.round(os.totalmem() / 1024 ** 2),
    ...(size === 0 ? {} : { diskGB: size }),
  }
}

/** The body of a registration (base-api "Calls of agents"). */
export async function hostFacts(
  agentId: string,
  hostname?: string,
  diskGB?: () => Promise<number>,
): Promise<RegisterRequest> {
  return {
    agentId,
    hostname: hostname ?? os.hostname(),
    ...(await systemFacts(diskGB)),
    agentVersion: agentVersion(),
  }
}

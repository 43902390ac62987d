import { execFile } from 'node:child_process'
import os from 'node:os'
import { promisify } from 'node:util'
import type { RegisterRequest } from '../../core/protocol/http/agent.ts'
import { ownPackage } from '../../disk/own-files.ts'
import { ownProcess } from '../processes/own-process.ts'

const run = promisify(execFile)
/** Milliseconds; a mount that hangs must not keep an agent from registering. */
const longest = 10_000

/** The version of this program, from its package. */
export const agentVersion = (): string => ownPackage().version

/**
 * What the disks hold, in GB, as systeminformation finds out; 0 where it can't. In a process of its own, as its 12 MB
 * would stay with the agent for ever; the other facts are cheap to have from Node.
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

/** What the host is, as the registration tells it (base-api "Calls of agents"). */
export async function hostFacts(
  agentId: string,
  hostname?: string,
  diskGB: () => Promise<number> = diskSize,
): Promise<RegisterRequest> {
  const addresses = Object.values(os.networkInterfaces()).flatMap((list) => list ?? [])
  const outside = addresses.filter((address) => !address.internal && !address.address.startsWith('fe80:'))
  return {
    agentId,
    hostname: hostname ?? os.hostname(),
    // IPv4 first: the server shows the first one as the host's address.
    ipAddresses: outside
      .sort((a, b) => a.family.localeCompare(b.family))
      .map((address) => address.address)
      .slice(0, 256),
    os: process.platform,
    kernel: os.release(),
    arch: os.arch(),
    cpuCores: os.cpus().length,
    memoryMB: Math.round(os.totalmem() / 1024 ** 2),
    diskGB: await diskGB(),
    agentVersion: agentVersion(),
  }
}

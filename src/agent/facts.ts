import { readFileSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import os from 'node:os'
import type { RegisterRequest } from '../core/protocol/http/agent.ts'

const packageFile = new URL('../../../package.json', import.meta.url)

/** The version of this program, from its package. */
export function agentVersion(): string {
  const { version } = JSON.parse(readFileSync(packageFile, 'utf8')) as { version: string }
  return version
}

function distribution(): string {
  for (const path of ['/etc/os-release', '/usr/lib/os-release']) {
    try {
      const [, quoted, bare] = /^PRETTY_NAME=(?:"(.*)"|(.*))$/m.exec(readFileSync(path, 'utf8')) ?? []
      const name = quoted ?? bare
      if (name) return name
    } catch {
      // The next place, or the kernel's own name.
    }
  }
  return os.type()
}

/** What the host is, as the registration tells it (seed "Agent registration"). */
export async function hostFacts(agentId: string, hostname?: string): Promise<RegisterRequest> {
  const addresses = Object.values(os.networkInterfaces()).flatMap((list) => list ?? [])
  const root = await statfs('/').catch(() => null)
  const outside = addresses.filter((address) => !address.internal && !address.address.startsWith('fe80:'))
  return {
    agentId,
    hostname: hostname ?? os.hostname(),
    // IPv4 first: the server shows the first one as the host's address.
    ipAddresses: outside
      .sort((a, b) => a.family.localeCompare(b.family))
      .map((address) => address.address)
      .slice(0, 256),
    os: distribution(),
    kernel: os.release(),
    arch: os.arch(),
    cpuCores: os.cpus().length,
    memoryMB: Math.round(os.totalmem() / 1024 ** 2),
    diskGB: root ? Math.round((root.blocks * root.bsize) / 1024 ** 3) : 0,
    agentVersion: agentVersion(),
  }
}

/** Prints what systeminformation knows of this host, as JSON, and ends: its memory is then not the agent's. */
import si from 'systeminformation'
import type { SystemInfo } from '../../core/protocol/http/hosts.ts'

const [os, memory, fileSystems] = await Promise.all([si.osInfo(), si.mem(), si.fsSize()])
const disks = new Map(fileSystems.map(({ fs, size }) => [fs, size]))
const bytes = [...disks.values()].reduce((sum, size) => sum + size, 0)
const facts: Partial<SystemInfo> = {
  os: os.platform,
  kernel: os.kernel,
  arch: os.arch,
  memoryMB: Math.round(memory.total / 1024 ** 2),
  diskGB: Math.round(bytes / 1024 ** 3),
}
process.stdout.write(JSON.stringify(facts))

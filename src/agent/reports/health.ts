import { statfs } from 'node:fs/promises'
import { leastFreePercent } from '../../core/hosts/agent-state.ts'
import type { AgentStatus } from '../../core/hosts/host.ts'
import { disksMounted } from '../processes/mounts.ts'

interface Health {
  readonly status: AgentStatus
  readonly reason: string | null
}

/** The first reason why the data directory may lack room for output of scripts; null if there is none. */
async function lackOfRoom(dataDir: string): Promise<string | null> {
  try {
    const { bavail, blocks, files, ffree } = await statfs(dataDir)
    const percent = (bavail / blocks) * 100
    if (percent < leastFreePercent) return `${Math.floor(percent)} % free on the disk of ${dataDir}`
    return files > 0 && ffree === 0 ? `no inodes are free on the disk of ${dataDir}` : null
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? ` (${String(error.code)})` : ''
    return `the data directory ${dataDir} cannot be read${code}`
  }
}

/**
 * Judges an agent by the disk of its data directory and by disks that have become read-only since they were first seen,
 * for example after an error. Images are read-only from the start.
 */
export function healthOf(dataDir: string, mounted = disksMounted): () => Promise<Health> {
  const wasReadOnly = new Map<string, boolean>()
  return async () => {
    const reasons = [await lackOfRoom(dataDir)]
    const disks = mounted()
    const devices = new Set(disks.map(({ device }) => device))
    for (const device of wasReadOnly.keys()) if (!devices.has(device)) wasReadOnly.delete(device)
    for (const { device, mountPoint, isReadOnly } of disks) {
      if (!wasReadOnly.has(device)) wasReadOnly.set(device, isReadOnly)
      else if (isReadOnly && devices.delete(device) && wasReadOnly.get(device) === false)
        reasons.push(`${mountPoint} has become read-only`)
    }
    const reason = reasons.filter((each) => each !== null).join(', ')
    return reason === '' ? { status: 'HEALTHY', reason: null } : { status: 'DEGRADED', reason }
  }
}

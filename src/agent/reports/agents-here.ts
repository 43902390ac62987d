import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { readStat } from '../processes/machine.ts'

/** What `rsm agent run` calls its process. */
export const processTitle = 'rsm agent run'
/** The file of a data directory that its agent holds open. */
const lockName = '/lock'

/** An agent that runs on this host. */
export interface AgentProcess {
  readonly pid: number
  readonly user: string
  /** Null where this user may not see it. */
  readonly dataDir: string | null
}

/** The name of a user of this machine, or its number where that has none in /etc/passwd. */
export function userName(uid: number): string {
  try {
    const users = readFileSync('/etc/passwd', 'utf8').split('\n')
    const found = users.map((line) => line.split(':')).find(([, , id]) => id === String(uid))
    return found?.[0] ?? `user ${uid}`
  } catch {
    return `user ${uid}`
  }
}

function dataDirectoryOf(pid: number): string | null {
  try {
    const directory = `/proc/${pid}/fd`
    for (const fd of readdirSync(directory)) {
      const path = readlinkSync(`${directory}/${fd}`)
      if (path.endsWith(lockName)) return dirname(path)
    }
  } catch {
    // Another user's, or gone meanwhile.
  }
  return null
}

/** The agents of all users on this host, by their processes. */
export function agentsHere(): AgentProcess[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return pids.map(Number).flatMap((pid) => {
    if (readStat(pid)?.command !== processTitle) return []
    try {
      return [{ pid, user: userName(statSync(`/proc/${pid}`).uid), dataDir: dataDirectoryOf(pid) }]
    } catch {
      return []
    }
  })
}

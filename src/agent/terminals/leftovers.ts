import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Log } from '../log.ts'
import { removeCgroup } from '../processes/cgroups.ts'
import type { Containment } from '../processes/containment.ts'
import { isOriginal, type Machine, type Origin } from '../processes/machine.ts'
import type { Tree } from '../processes/processes.ts'

export interface Cleanup extends Pick<Origin, 'bootId'>, Partial<Pick<Origin, 'directory'>> {
  readonly tree: Tree
  /** Cgroups to remove when the tree has ended. */
  readonly groups: readonly string[]
}

const fileName = 'held.json'

/** Written before the terminal begins, so that the next agent finds it in any case. */
export function note(directory: string, cleanup: Cleanup): void {
  writeFileSync(join(directory, fileName), JSON.stringify(cleanup), { mode: 0o600 })
}

export function removeGroups({ groups }: Cleanup): void {
  for (const group of groups) removeCgroup(group)
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null

function isProcess(value: unknown): boolean {
  return isObject(value) && typeof value['pid'] === 'number' && typeof value['startTime'] === 'number'
}

function isTree(value: unknown): value is Tree {
  if (!isObject(value)) return false
  const { mark, root, uids, cgroup, isBoxed } = value
  return (
    typeof mark === 'string' &&
    (root === null || isProcess(root)) &&
    Array.isArray(uids) &&
    uids.every((uid) => typeof uid === 'number') &&
    (cgroup === null || typeof cgroup === 'string') &&
    typeof isBoxed === 'boolean'
  )
}

function isCleanup(value: unknown): value is Cleanup {
  if (!isObject(value)) return false
  const { bootId, directory, tree, groups } = value
  return (
    typeof bootId === 'string' &&
    (directory === undefined || typeof directory === 'string') &&
    isTree(tree) &&
    Array.isArray(groups) &&
    groups.every((group) => typeof group === 'string')
  )
}

function read(directory: string): Cleanup | null {
  try {
    const found: unknown = JSON.parse(readFileSync(join(directory, fileName), 'utf8'))
    return isCleanup(found) ? found : null
  } catch {
    return null
  }
}

/** Ends processes left by a killed agent's terminals: some ignore that their PTY is closed. */
export async function sweepTerminals(
  directory: string,
  { containment, machine, log }: { containment: Containment; machine: Machine; log: Log },
): Promise<void> {
  mkdirSync(directory, { recursive: true, mode: 0o711 })
  const end = async (sessionId: string) => {
    const place = join(directory, sessionId)
    const cleanup = read(place)
    // A copy lists sessions of the original agent.
    if (cleanup && cleanup.bootId === machine.bootId() && isOriginal(cleanup, place)) {
      const { remnants } = await containment.end(cleanup.tree)
      log('INFO', 'ended processes left by a session', { sessionId, remaining: remnants.length })
      removeGroups(cleanup)
    }
    rmSync(place, { recursive: true, force: true })
  }
  const tryToEnd = (sessionId: string) =>
    end(sessionId).catch((error: unknown) => {
      const why = error instanceof Error ? error.message : String(error)
      log('WARN', 'could not end processes left by a session', { sessionId, why })
    })
  await Promise.all(readdirSync(directory).map(tryToEnd))
}

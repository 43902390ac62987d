import { existsSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import type { Clock } from '../clock.ts'

interface Mount {
  readonly root: string
  readonly path: string
}

/** Milliseconds between attempts to remove cgroups of ended executions. */
const sweepEvery = 30_000

/** Sub-cgroup that `DelegateSubgroup=agent` of systemd puts the agent in. */
const subgroup = 'agent'

/**
 * The directory for this agent's cgroups, or null: its own cgroup in the hierarchy of a v1 controller, or of
 * v2 if `controller` is null. In v2, a group cannot have both processes and controllers for its children ("no
 * internal processes"). So an agent in a delegated subgroup uses the group above.
 */
export function cgroupHome(controller: string | null): string | null {
  const mount = mountOf(controller)
  const own = ownPath(controller)
  if (mount === null || own === null || own.startsWith('/..')) return null
  const isBelow = mount.root !== '/' && (own === mount.root || own.startsWith(`${mount.root}/`))
  const path = join(mount.path, isBelow ? own.slice(mount.root.length) : own)
  return controller === null && basename(path) === subgroup ? dirname(path) : path
}

function mountOf(controller: string | null): Mount | null {
  for (const line of readFileSync('/proc/self/mountinfo', 'utf8').split('\n')) {
    const [before = '', after = ''] = line.split(' - ')
    const [type, , options = ''] = after.split(' ')
    const isIt =
      controller === null ? type === 'cgroup2' : type === 'cgroup' && options.split(',').includes(controller)
    const [, , , root, path] = before.split(' ')
    if (isIt && root !== undefined && path !== undefined) return { root, path }
  }
  return null
}

function ownPath(controller: string | null): string | null {
  for (const line of readFileSync('/proc/self/cgroup', 'utf8').split('\n')) {
    const [number, controllers = '', ...path] = line.split(':')
    const isIt = controller === null ? number === '0' : controllers.split(',').includes(controller)
    if (isIt) return path.join(':')
  }
  return null
}

/** Kills all processes in a cgroup and below it, in one step. */
export function killCgroup(path: string): void {
  try {
    writeFileSync(join(path, 'cgroup.kill'), '1')
  } catch {
    // Already removed.
  }
}

export function cgroupPids(path: string): number[] {
  const pids = withChildren(path).flatMap((group) => read(join(group, 'cgroup.procs')).split('\n'))
  // A process of another PID namespace reads as 0, which kill(2) takes for the agent's own group.
  return pids.map(Number).filter((pid) => pid > 1 && pid !== process.pid)
}

export function isPopulated(path: string | null): boolean {
  return path !== null && /^populated 1$/m.test(read(join(path, 'cgroup.events')))
}

/** Removes an empty cgroup; false while a process left by the script still runs in it. */
export function removeCgroup(path: string): boolean {
  try {
    rmdirSync(path)
    return true
  } catch {
    // It has child groups or processes, or is already removed.
  }
  if (!existsSync(path)) return true
  try {
    for (const group of withChildren(path)) rmdirSync(group)
    return true
  } catch {
    return false
  }
}

/** A cgroup and those that scripts created inside it, deepest first; any may vanish at any time. */
function withChildren(path: string): string[] {
  try {
    const below = readdirSync(path, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .flatMap((entry) => withChildren(join(path, entry.name)))
    return [...below, path]
  } catch {
    return [path]
  }
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

/** Removes cgroups of ended executions once the last process left by a script has ended. */
export class CgroupLeftovers {
  readonly #clock: Clock
  readonly #inhabited = new Set<string>()
  #cancelTimer: (() => void) | undefined

  constructor(clock: Clock) {
    this.#clock = clock
  }

  remove(
    owner: {
      readonly cgroup: string | null
      readonly limited?: { readonly groups: readonly string[] }
    } | null,
  ): void {
    const groups = new Set([owner?.cgroup ?? [], owner?.limited?.groups ?? []].flat())
    for (const group of groups) if (!removeCgroup(group)) this.#inhabited.add(group)
    if (this.#inhabited.size > 0) this.#cancelTimer ??= this.#clock.after(sweepEvery, () => this.#sweep())
  }

  stop(): void {
    this.#cancelTimer?.()
    for (const group of this.#inhabited) removeCgroup(group)
  }

  #sweep(): void {
    this.#cancelTimer = undefined
    for (const group of this.#inhabited) if (removeCgroup(group)) this.#inhabited.delete(group)
    this.remove(null)
  }
}

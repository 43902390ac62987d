import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { RsmError } from '../../core/errors.ts'
import type { ScriptComplete } from '../../core/protocol/messages.ts'
import { type LimitName, type Limits, limitNames, limitSize, limitWords } from '../../core/tasks/limits.ts'
import { cgroupHome, removeCgroup } from './cgroups.ts'

/** Microseconds of a CPU quota period. */
const period = 100_000

interface Controller {
  /** Name in both cgroup versions. */
  readonly name: string
  /** Files and values that set the limit in v2 and v1; a name ending in ? is optional. */
  readonly v2: (size: number) => readonly (readonly [file: string, value: string])[]
  readonly v1: (size: number) => readonly (readonly [file: string, value: string])[]
}

const controllers: Record<LimitName, Controller> = {
  memoryMB: {
    name: 'memory',
    // All or nothing: a script that lost one of its processes would continue half-broken.
    v2: (size) => [
      ['memory.max', String(size * 1024 ** 2)],
      ['memory.swap.max?', '0'],
      ['memory.oom.group?', '1'],
    ],
    v1: (size) => [
      ['memory.limit_in_bytes', String(size * 1024 ** 2)],
      ['memory.memsw.limit_in_bytes?', String(size * 1024 ** 2)],
    ],
  },
  processes: {
    name: 'pids',
    v2: (size) => [['pids.max', String(size)]],
    v1: (size) => [['pids.max', String(size)]],
  },
  cpuPercent: {
    name: 'cpu',
    v2: (size) => [['cpu.max', `${(size * period) / 100} ${period}`]],
    v1: (size) => [
      ['cpu.cfs_period_us', String(period)],
      ['cpu.cfs_quota_us', String((size * period) / 100)],
    ],
  },
}

/** Limits in force for one execution, and the cgroups that enforce them. */
export interface Limited {
  readonly limits: Limits
  readonly groups: readonly string[]
}

export interface Limiter {
  readonly enforced: readonly LimitName[]
  /** Reason why a limit cannot be enforced here. */
  lack(name: LimitName): string
  /**
   * Creates the cgroups of an execution; its wrapper must enter all of them first. `cgroup` is the cgroup of
   * its tree, `own` the number of processes that the agent adds to it. Throws RsmError `unavailable` if the
   * kernel refuses one: nothing may run then.
   */
  create(taskId: string, limits: Limits, cgroup: string | null, own: number): Limited
  /** Removes empty groups, except those of the given executions. */
  sweep(running: ReadonlySet<string>): void
}

function write(group: string, settings: readonly (readonly [string, string])[]): void {
  for (const [name, value] of settings) {
    const isOptional = name.endsWith('?')
    const path = join(group, isOptional ? name.slice(0, -1) : name)
    if (!isOptional || existsSync(path)) writeFileSync(path, value)
  }
}

/** Whether groups created here have the file; probed, because only a trial shows whether the agent may. */
function offers(parent: string, probe: string, file: string): boolean {
  try {
    mkdirSync(join(parent, probe))
    const isThere = existsSync(join(parent, probe, file))
    rmdirSync(join(parent, probe))
    return isThere
  } catch {
    return false
  }
}

/** Location of a limit: the cgroup of the tree (v2), or a cgroup of its own below `parent` (v1). */
export type Place = { readonly version: 2 } | { readonly version: 1; readonly parent: string }

/**
 * Enables the controller for child groups, unless the group itself has processes: the kernel would then
 * accept no new ones while scripts run below, and systemd could not restart the agent.
 */
function enable(home: string, name: string): void {
  try {
    const isRoot = !existsSync(join(home, 'cgroup.type'))
    if (isRoot || readFileSync(join(home, 'cgroup.procs'), 'utf8') === '')
      writeFileSync(join(home, 'cgroup.subtree_control'), `+${name}`)
  } catch {
    // Missing or not permitted: the probe finds out.
  }
}

function placeOf(controller: Controller, probe: string, holdsTrees: boolean): Place | null {
  const [[file] = ['']] = controller.v2(1)
  const home = holdsTrees ? cgroupHome(null) : null
  if (home !== null) {
    enable(home, controller.name)
    if (offers(home, probe, file)) return { version: 2 }
  }
  const parent = cgroupHome(controller.name)
  const [[old] = ['']] = controller.v1(1)
  return parent !== null && offers(parent, probe, old) ? { version: 1, parent } : null
}

/** `holdsTrees`: trees are in v2 cgroups, which can then limit them. Names as in containment.ts. */
export function findLimiter(storeId: string, holdsTrees: boolean): Limiter {
  const prefix = `rsm-${storeId}-`
  const places = new Map<LimitName, Place>()
  for (const name of limitNames) {
    const place = placeOf(controllers[name], `${prefix}probe-${process.pid}-${name}`, holdsTrees)
    if (place) places.set(name, place)
  }
  return limiterOf(places, prefix)
}

/** A limiter for the limits enforced at these places; its cgroup names begin with `prefix`. */
export function limiterOf(places: ReadonlyMap<LimitName, Place>, prefix: string): Limiter {
  const enforced = limitNames.filter((name) => places.has(name))
  return {
    enforced,
    lack: (name) =>
      `this host cannot limit ${limitWords[name]}: the agent cannot create a cgroup with the ${controllers[name].name} controller`,
    create(taskId, limits, cgroup, own) {
      const groups = new Set<string>()
      for (const name of limitNames) {
        const size = limits[name]
        if (size === undefined) continue
        const place = places.get(name)
        if (!place) throw new RsmError('unavailable', this.lack(name))
        const group = place.version === 2 ? cgroup : join(place.parent, `${prefix}${taskId}`)
        try {
          if (group === null) throw new RsmError('unavailable', 'it has no cgroup')
          mkdirSync(group, { recursive: true })
          const total = name === 'processes' ? size + own : size
          write(group, place.version === 2 ? controllers[name].v2(total) : controllers[name].v1(total))
          groups.add(group)
        } catch (cause) {
          const reason = cause instanceof Error ? cause.message : String(cause)
          for (const made of [...groups, ...(cgroup === null ? [] : [cgroup])]) removeCgroup(made)
          throw new RsmError('unavailable', `its limit on ${limitWords[name]} was refused: ${reason}`, {
            cause,
          })
        }
      }
      return { limits, groups: [...groups] }
    },
    sweep(running) {
      for (const place of places.values()) {
        if (place.version === 2) continue
        for (const name of readdirSync(place.parent))
          if (name.startsWith(prefix) && !running.has(name.slice(prefix.length)))
            removeCgroup(join(place.parent, name))
      }
    },
  }
}

function countOf(group: string, file: string, key: string): number {
  try {
    const text = readFileSync(join(group, file), 'utf8')
    return Number(new RegExp(`^${key} (\\d+)$`, 'm').exec(text)?.[1] ?? 0)
  } catch {
    return 0
  }
}

/** Sentence about the limit a failed execution reached, or null. Call it before the groups are removed. */
export function limitReached(
  limited: Limited | undefined,
  { status, exitCode }: Pick<ScriptComplete, 'status' | 'exitCode'>,
): string | null {
  if (limited === undefined || status !== 'FAILED') return null
  const { limits, groups } = limited
  const { memoryMB, processes } = limits
  const total = (file: string, key: string) =>
    groups.reduce((sum, group) => sum + countOf(group, file, key), 0)
  if (
    memoryMB !== undefined &&
    total('memory.events', 'oom_kill') + total('memory.oom_control', 'oom_kill') > 0
  ) {
    const size = limitSize('memoryMB', memoryMB)
    return exitCode === 137
      ? `killed: over its memory limit of ${size}`
      : `one of its processes was killed: over its memory limit of ${size}`
  }
  if (processes !== undefined && total('pids.events', 'max') > 0)
    return `it reached its limit of ${processes} processes`
  return null
}

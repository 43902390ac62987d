import { readFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'

interface Mount {
  /** The part of the hierarchy that is mounted. */
  readonly root: string
  readonly path: string
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

/** The sub-cgroup that systemd puts the agent into by `DelegateSubgroup=agent`. */
const subgroup = 'agent'

/**
 * The directory under which this agent makes its cgroups, or null where there is none: its own cgroup in the hierarchy
 * of a v1 controller, or in the v2 one for null. In v2 no group has both processes and controllers for its children
 * ("no internal processes"), so an agent that was put into a subgroup of its own works in the one above.
 */
export function cgroupHome(controller: string | null): string | null {
  const mount = mountOf(controller)
  const own = ownPath(controller)
  if (mount === null || own === null || own.startsWith('/..')) return null
  const isBelow = mount.root !== '/' && (own === mount.root || own.startsWith(`${mount.root}/`))
  const path = join(mount.path, isBelow ? own.slice(mount.root.length) : own)
  return controller === null && basename(path) === subgroup ? dirname(path) : path
}

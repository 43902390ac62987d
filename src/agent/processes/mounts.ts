import { readFileSync, realpathSync } from 'node:fs'

interface Mount {
  readonly device: string
  readonly mountPoint: string
  readonly type: string
  /** Programs on it cannot be executed or loaded. */
  readonly isNoexec: boolean
  /** The file system itself is read-only, not only this mount: otherwise it can still fill up. */
  readonly isReadOnly: boolean
}

/** Mounts in the kernel's order; touches no file system. `text` has the format of proc_pid_mountinfo(5). */
export function mounts(text = readFileSync('/proc/self/mountinfo', 'utf8')): Mount[] {
  return text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const fields = line.split(' ')
      const [, , , , mount = '', options = ''] = fields
      const [type = '', device = '', ofAll = ''] = fields.slice(fields.indexOf('-', 6) + 1)
      const mountPoint = mount.replace(/\\(\d{3})/g, (_, octal: string) =>
        String.fromCharCode(Number.parseInt(octal, 8)),
      )
      return {
        device,
        mountPoint,
        type,
        isNoexec: options.split(',').includes('noexec'),
        // Since Linux 6.16, ext4 reports `emergency_ro` after an error made it read-only.
        isReadOnly: ofAll.split(',').some((option) => option === 'ro' || option === 'emergency_ro'),
      }
    })
}

/** File systems without disk space of this host that could run out. */
const notDisks = new Set(
  (
    'proc sysfs tmpfs devtmpfs devpts cgroup cgroup2 squashfs overlay mqueue autofs bpf debugfs tracefs securityfs ' +
    'pstore hugetlbfs configfs fusectl ramfs binfmt_misc efivarfs nsfs rpc_pipefs iso9660 nfs nfs4 cifs fuse fuse.sshfs'
  ).split(' '),
)

export const disksMounted = (): Mount[] =>
  mounts().filter(({ mountPoint, type }) => mountPoint === '/' || !notDisks.has(type))

/** Whether programs on the file system of an existing directory can be run and loaded. */
export function allowsExec(directory: string): boolean {
  const path = realpathSync(directory)
  let found: Mount | undefined
  for (const each of mounts()) {
    const { mountPoint } = each
    const holds = mountPoint === '/' || path === mountPoint || path.startsWith(`${mountPoint}/`)
    // A later mount at the same place covers an earlier one.
    if (holds && mountPoint.length >= (found?.mountPoint.length ?? 0)) found = each
  }
  return found?.isNoexec !== true
}

/**
 * Unit that stops answering together with a path, by name only: its mount, or the path itself on the root and
 * on an automounter, because it may lead anywhere from there.
 */
export function silentWith(path: string): string {
  let found = '/'
  for (const { mountPoint, type } of mounts()) {
    const holds = path === mountPoint || path.startsWith(`${mountPoint}/`)
    if (holds && type !== 'autofs' && mountPoint.length > found.length) found = mountPoint
  }
  return found === '/' ? path : found
}

import { readFileSync } from 'node:fs'

interface Mount {
  readonly device: string
  readonly mountPoint: string
  readonly type: string
}

/** What is mounted, in the kernel's order; asks no file system. */
export function mounts(): Mount[] {
  return readFileSync('/proc/self/mounts', 'utf8')
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const [device = '', mount = '', type = ''] = line.split(' ')
      const mountPoint = mount.replace(/\\(\d{3})/g, (_, octal: string) =>
        String.fromCharCode(Number.parseInt(octal, 8)),
      )
      return { device, mountPoint, type }
    })
}

/**
 * What falls silent together with a path, by its name alone: the mount that it lies on, or the path itself on the root
 * and on an automounter, from where it may lead anywhere.
 */
export function silentWith(path: string): string {
  let found = '/'
  for (const { mountPoint, type } of mounts()) {
    const holds = path === mountPoint || path.startsWith(`${mountPoint}/`)
    if (holds && type !== 'autofs' && mountPoint.length > found.length) found = mountPoint
  }
  return found === '/' ? path : found
}

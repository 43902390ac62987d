import { readdirSync, readFileSync } from 'node:fs'
import type { FileOrder } from './order.ts'

/** @types/node does not know it. */
const system = process as typeof process & { initgroups(user: string, group: number): void }

/**
 * Makes this process another user's, for good: user, groups and capabilities of all its threads. From here on, it
 * starts cp and tar only, on files of that user. No process of that user can read its memory, where the token is, because
 * the kernel lets none trace a process that was root's.
 * @throws Error where anything of it is still root's
 */
export function become({ name, uid, gid }: NonNullable<FileOrder['runAs']>): void {
  // What formats stack traces is loaded with the first of them; the other user may not be able to read its file.
  void new Error('first').stack
  system.initgroups(name, gid)
  process.setgid?.(gid)
  process.setuid?.(uid)
  for (const thread of readdirSync('/proc/self/task')) {
    const status = readFileSync(`/proc/self/task/${thread}/status`, 'latin1')
    const ids = (key: string) => new RegExp(`^${key}:\\s*(.*)$`, 'm').exec(status)?.[1]?.split(/\s+/) ?? []
    const isOther =
      ids('Uid').every((id) => Number(id) === uid) && ids('Gid').every((id) => Number(id) === gid)
    const isBare = ['CapPrm', 'CapEff'].every((key) => /^0+$/.test(ids(key)[0] ?? ''))
    if (!isOther || !isBare || uid === 0) throw new Error(`this process could not become ${name} permanently`)
  }
}

import { fchmodSync, fchownSync, fstatSync, type Stats } from 'node:fs'
import { codeOf, Failure, refusedBy } from './failure.ts'

/** Of a regular file. Null: what it has when it is made. */
export interface Attributes {
  readonly mode: number
  readonly uid: number | null
  readonly gid: number | null
}

/** The bits of a mode that chmod(2) sets: permissions, setuid, setgid and sticky bit. */
export const modeBits = 0o7777
/** Setuid and setgid. A copy of a file has another owner, so it gets them only where they are asked for. */
const setIds = 0o6000

/** What an order asks for, by numbers; undefined where it does not say. */
export interface Wish {
  readonly mode: number | undefined
  readonly sourceMode: number | undefined
  readonly uid: number | null
  readonly gid: number | null
}

/** The mode of a file if neither the order, nor the former file, nor the source gives one. */
const usualMode = 0o644

/** `former`: the regular file that is replaced. `entryMode`: of the entry of a tar (contract §13). */
export function attributesFor(wish: Wish, former: Stats | null, entryMode?: number): Attributes {
  const source = wish.sourceMode ?? entryMode
  const formerMode = former === null ? undefined : former.mode & modeBits
  return {
    mode: wish.mode ?? formerMode ?? (source === undefined ? usualMode : source & modeBits & ~setIds),
    uid: wish.uid ?? former?.uid ?? null,
    gid: wish.gid ?? former?.gid ?? null,
  }
}

/** Whether its source has a setuid or setgid that a new file does not get. */
export const losesSetIds = ({ mode, sourceMode }: Wish, former: Stats | null, entryMode = 0): boolean =>
  mode === undefined && former === null && ((sourceMode ?? entryMode) & setIds) !== 0

const isOwned = ({ uid, gid }: Attributes, found: Stats) =>
  (uid === null || uid === found.uid) && (gid === null || gid === found.gid)

/** Whether a file has them. */
export const fits = (wanted: Attributes, found: Stats): boolean =>
  wanted.mode === (found.mode & modeBits) && isOwned(wanted, found)

/** Gives them to an open file; its owner first, as the system takes some bits of a mode away with it. */
export function apply(wanted: Attributes, fd: number, path: string): void {
  const found = fstatSync(fd)
  try {
    if (!isOwned(wanted, found)) fchownSync(fd, wanted.uid ?? -1, wanted.gid ?? -1)
  } catch (error) {
    if (codeOf(error) !== 'EPERM') throw refusedBy(error, path, 'chown')
    const owner = `${wanted.uid ?? found.uid}:${wanted.gid ?? found.gid}`
    throw new Failure(`chown ${path}: it is to belong to ${owner}, which its writer may not settle (EPERM)`)
  }
  try {
    fchmodSync(fd, wanted.mode)
  } catch (error) {
    throw refusedBy(error, path, 'chmod')
  }
}

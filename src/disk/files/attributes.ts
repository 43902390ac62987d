import { spawnSync } from 'node:child_process'
import { fchmodSync, fchownSync, fstatSync, readFileSync, type Stats } from 'node:fs'
import { Failure, refusedBy, userName } from './failure.ts'

/** Bits of capabilities(7). */
export const [capChown, capDacOverride, capFowner] = [0n, 1n, 3n]
/** For programs that handle ACLs and extended attributes. They get descriptors, not paths. */
export const howRun = () =>
  ({
    // Do not pass on the agent's environment: other users can read that of their processes.
    env: { ...(process.env['PATH'] !== undefined && { PATH: process.env['PATH'] }), LC_ALL: 'C' },
    encoding: 'utf8',
    timeout: 20_000,
    killSignal: 'SIGKILL',
  }) as const

/** Null keeps the current value of the file. */
export interface Ownership {
  readonly uid: number | null
  readonly gid: number | null
}

export interface Attributes extends Ownership {
  readonly mode: number
}

/** Mode bits that chmod(2) sets: permissions, setuid, setgid and sticky bit. */
export const modeBits = 0o7777
/** Setuid and setgid. A copy usually has another owner, so only `--mode` sets them. */
const setIds = 0o6000

/** Attributes of an order, as numbers; undefined or null if it does not set them. */
export interface DesiredAttributes {
  readonly mode: number | undefined
  readonly sourceMode: number | undefined
  readonly uid: number | null
  readonly gid: number | null
}

/** Default mode if the order, the previous file and the source have none. */
const usualMode = 0o644

/** `previous`: the regular file to replace. `entryMode`: mode of the tar entry (contract §13). */
export function attributesFor(
  desired: DesiredAttributes,
  previous: Stats | null,
  entryMode?: number,
): Attributes {
  const source = desired.sourceMode ?? entryMode
  const previousMode = previous === null ? undefined : previous.mode & modeBits
  return {
    mode: desired.mode ?? previousMode ?? (source === undefined ? usualMode : source & modeBits & ~setIds),
    uid: desired.uid ?? previous?.uid ?? null,
    gid: desired.gid ?? previous?.gid ?? null,
  }
}

/** Whether the source has setuid or setgid and the new file does not get it. */
export const losesSetIds = (
  { mode, sourceMode }: DesiredAttributes,
  previous: Stats | null,
  entryMode = 0,
): boolean => mode === undefined && previous === null && ((sourceMode ?? entryMode) & setIds) !== 0

type Owner = Pick<Stats, 'uid' | 'gid'>

const isOwned = ({ uid, gid }: Ownership, found: Owner) =>
  (uid === null || uid === found.uid) && (gid === null || gid === found.gid)

export const fits = (wanted: Attributes, found: Stats): boolean =>
  wanted.mode === (found.mode & modeBits) && isOwned(wanted, found)

export function isAble(capability: bigint): boolean {
  const status = readFileSync('/proc/self/status', 'latin1')
  const effective = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? 0}`)
  return ((effective >> capability) & 1n) === 1n
}

/** Throws the `Failure` that `apply` would, for an existing file or a new one, which has no mode yet. */
export function assertGivable(
  wanted: Ownership & Partial<Attributes>,
  found: Owner & { readonly mode?: number },
  path: string,
): void {
  const isOwn = found.uid === process.geteuid?.()
  const groups = [process.getegid?.(), ...(process.getgroups?.() ?? [])]
  const isOurs = isOwn && (wanted.uid ?? found.uid) === found.uid && groups.includes(wanted.gid ?? found.gid)
  if (!isOwned(wanted, found) && !isOurs && !isAble(capChown)) {
    const owner = `${wanted.uid ?? found.uid}:${wanted.gid ?? found.gid}`
    throw new Failure(`chown ${path}: ${userName()} may not give it to ${owner} (EPERM)`)
  }
  const { mode = wanted.mode } = found
  const isChanged = wanted.mode !== undefined && mode !== undefined && wanted.mode !== (mode & modeBits)
  if (isChanged && !isOwn && !isAble(capFowner))
    throw new Failure(`chmod ${path}: ${userName()} does not own it (EPERM)`)
}

/** Sets owner, then mode, because chown clears some mode bits and all capabilities. `between` runs between the two. */
export function apply(wanted: Attributes, fd: number, path: string, between = () => {}): void {
  const found = fstatSync(fd)
  try {
    if (!isOwned(wanted, found)) fchownSync(fd, wanted.uid ?? -1, wanted.gid ?? -1)
  } catch (error) {
    assertGivable(wanted, found, path)
    throw refusedBy(error, path, 'chown')
  }
  between()
  try {
    fchmodSync(fd, wanted.mode)
  } catch (error) {
    assertGivable(wanted, found, path)
    throw refusedBy(error, path, 'chmod')
  }
}

/**
 * Copies ACL, extended attributes and capabilities between open files, with cp of coreutils. `isAble` is
 * false if this host's cp cannot do it for any file.
 */
export function copyExtended(from: number, to: number): { isKept: boolean; isAble: boolean; why: string } {
  const { size } = fstatSync(to)
  const { status, stderr, error } = spawnSync(
    'cp',
    ['--attributes-only', '--preserve=mode,xattr', '/proc/self/fd/3', '/proc/self/fd/4'],
    { ...howRun(), stdio: ['ignore', 'ignore', 'pipe', from, to] },
  )
  if (fstatSync(to).size !== size) throw new Failure('cp --attributes-only of this host changed the content')
  const why = error?.message ?? stderr.split('\n')[0] ?? ''
  const isAble = error === undefined && !/unrecognized option|without xattr support/.test(stderr)
  return { isKept: status === 0, isAble, why }
}

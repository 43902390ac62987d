import { closeSync, fstatSync } from 'node:fs'
import type { CopyOrder } from '../../core/protocol/messages.ts'
import { apply, assertGivable, type DesiredAttributes, fits } from './attributes.ts'
import { shownNames } from './byte-names.ts'
import { type Comparison, describeChanges } from './comparison.ts'
import { Failure } from './failure.ts'
import type { OpenDirectory } from './open-directory.ts'
import { addBeside, assertMutable, assertReplaceable, Replacement, type Temporaries } from './replacement.ts'

const listedAtMost = 5

/** `/a, /b and 3 more` */
export const listed = (paths: readonly string[]): string =>
  shownNames(paths.slice(0, listedAtMost).join(', ')) +
  (paths.length > listedAtMost ? ` and ${paths.length - listedAtMost} more` : '')

/** Null where nothing is to be told. */
export const bareText = (paths: readonly string[]): string | null =>
  paths.length === 0
    ? null
    : `${listed(paths)}: copied without setuid and setgid, which only --mode or chmod sets`

/** What files are put in their places with. */
export interface Placing {
  readonly copy: Pick<CopyOrder, 'path' | 'backup' | 'check'>
  readonly desired: DesiredAttributes
  readonly workspace: Temporaries
  /** Collects the paths of new files that did not get the setuid or setgid of their source. */
  readonly bare: string[]
  /** For people who read what a copy did. */
  readonly say: (line: string) => void
}

/** Makes one file what it is to be, or says what that would change; answers whether there was anything. */
export async function settle(
  { copy, workspace, say }: Placing,
  place: Comparison,
  pieces: () => AsyncIterable<Buffer> | Iterable<Buffer>,
  isPlain?: () => boolean,
): Promise<boolean> {
  const { path, directory, name, previous, wanted, isSameText } = place
  if (isSameText && previous !== null && fits(wanted, previous)) return false
  // A second name may be anywhere: what it leads to is not changed.
  const isInPlace = isSameText && previous?.nlink === 1
  if (copy.check !== undefined) judge(place, isInPlace)
  if (directory === null || copy.check !== undefined) {
    await describeChanges(place, copy.check === 'DIFF' ? pieces() : null, say)
    return true
  }
  if (isInPlace) {
    applyTo(place, directory, workspace)
    say(`owner or mode of ${path} changed`)
    return true
  }
  const replacement = new Replacement(workspace, directory, name)
  try {
    for await (const piece of pieces()) await replacement.write(piece)
    await replacement.commit(wanted, { keepsPrevious: copy.backup === true, isPlain })
  } finally {
    await replacement.close()
  }
  say(`${path} ${previous === null ? 'written' : 'replaced'}`)
  return true
}

/** Throws the `Failure` that writing would end in, as far as that shows beforehand. */
function judge({ directory, name, previous, wanted, path }: Comparison, isInPlace: boolean): void {
  if (directory === null) return
  if (isInPlace && previous !== null) {
    assertMutable(directory, name)
    return assertGivable(wanted, previous, path)
  }
  assertReplaceable(directory, name)
  addBeside(directory, name, () => directory.assertWritable())
  assertGivable(wanted, directory.ownerOfNew(), path)
}

/** Owner and mode alone, of the very file that was compared. */
function applyTo(
  { name, previous, wanted, path }: Comparison,
  directory: OpenDirectory,
  workspace: Temporaries,
): void {
  assertMutable(directory, name)
  const fd = directory.openFile(name)
  try {
    if (fstatSync(fd).ino !== previous?.ino) throw new Failure(`${path} has just been replaced`)
    workspace.checkCancelled()
    apply(wanted, fd, path)
    workspace.report({ changed: true })
  } finally {
    closeSync(fd)
  }
}

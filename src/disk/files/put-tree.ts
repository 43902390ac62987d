import { basename, dirname, join, normalize } from 'node:path'
import { assertGivable, attributesFor, type DesiredAttributes, losesSetIds, modeBits } from './attributes.ts'
import { entriesOf, type Judged, judge, type TreeEntry } from './entries.ts'
import { Failure } from './failure.ts'
import { kindOf, OpenDirectory } from './open-directory.ts'
import { longestText, whole } from './open-file.ts'
import { assertReplaceable, backupName, isSameText, sha256In, statReplaceable } from './replacement.ts'
import { type Placing, settle } from './settle.ts'

/** Mode of directories without an entry in the tree. */
const usualMode = 0o755
/** Without these bits the creator could not write in the directory. */
const ownersMode = 0o700

const isAsked = ({ uid, gid }: DesiredAttributes) => uid !== null || gid !== null

interface Step {
  readonly name: string
  readonly directory: OpenDirectory
}

/** Writes the entries of a tree below a directory, one after the other, each within its own directory. */
class TreeCopy {
  readonly #placing: Placing
  /** Null if it does not exist and this is a dry run. */
  readonly #root: OpenDirectory | null
  readonly #isNewRoot: boolean
  readonly #judged: Judged
  /** Open directories from the root to that of the last entry. */
  readonly #way: Step[] = []
  /** Directories that get their mode at the end. */
  readonly #late: { readonly names: readonly string[]; readonly mode: number }[] = []
  changed: boolean

  constructor(
    placing: Placing,
    { root, isNew }: { root: OpenDirectory | null; isNew: boolean },
    judged: Judged,
  ) {
    this.#placing = placing
    this.#root = root
    this.#isNewRoot = isNew
    this.#judged = judged
    this.changed = isNew
  }

  async put(entry: TreeEntry): Promise<void> {
    if (entry.kind === 'directory') return this.#putDirectory(entry)
    const directory = this.#enter(entry.names.slice(0, -1))
    return entry.kind === 'file' ? this.#putFile(entry, directory) : this.#putLink(entry, directory)
  }

  /** Sets the modes that would have locked out the creator, and makes all names durable. */
  end(): void {
    for (const { names, mode } of this.#late.toReversed()) this.#enter(names)?.settle(null, null, mode)
    this.close()
    this.#root?.sync()
  }

  close(): void {
    while (this.#way.length > 0) this.#back()
  }

  #back(): void {
    const step = this.#way.pop()
    step?.directory.sync()
    step?.directory.close()
  }

  get #here(): OpenDirectory | null {
    return this.#way.at(-1)?.directory ?? this.#root
  }

  #pathOf(names: readonly string[]): string {
    return join(this.#placing.copy.path, ...names)
  }

  /** Opens the directory of these names, and creates it if missing; in a dry run null if missing. */
  #enter(names: readonly string[]): OpenDirectory | null {
    let common = 0
    while (common < this.#way.length && this.#way[common]?.name === names[common]) common += 1
    while (this.#way.length > common) this.#back()
    for (const [depth, name] of names.entries()) {
      const parent = this.#here
      if (depth < common) continue
      if (parent === null) return null
      const found = parent.lstat(name)
      if (found === null) {
        if (this.#placing.copy.check !== undefined) {
          parent.assertTakes(this.#placing.desired, parent.pathOf(name))
          return null
        }
        this.#make(parent, name, names.slice(0, depth + 1), usualMode)
      } else if (!found.isDirectory())
        throw new Failure(
          `${parent.pathOf(name)} is ${kindOf(found)}, not a directory: cannot write to ${this.#pathOf(names)}`,
        )
      this.#way.push({ name, directory: parent.child(name) })
    }
    return this.#here
  }

  #make(parent: OpenDirectory, name: string, names: readonly string[], mode: number): void {
    const { workspace, desired } = this.#placing
    const isLate = (mode & ownersMode) !== ownersMode
    workspace.checkCancelled()
    // Create it with its mode if the owner stays: a chmod may clear a setgid inherited from the parent.
    parent.makeDirectory(name, isLate || isAsked(desired) ? ownersMode : mode)
    workspace.report({ changed: true })
    this.changed = true
    const made = parent.child(name)
    try {
      if (isLate) this.#late.push({ names, mode })
      made.settle(desired.uid, desired.gid, isLate ? ownersMode : mode)
    } finally {
      made.close()
    }
  }

  #putDirectory({ names, mode }: TreeEntry): void {
    const name = names.at(-1)
    const fresh = mode & modeBits
    if (name === undefined) {
      if (this.#isNewRoot && this.#root !== null) {
        if ((fresh & ownersMode) === ownersMode) this.#root.settle(null, null, fresh)
        else this.#late.push({ names, mode: fresh })
      }
      return this.#own(this.#root)
    }
    const parent = this.#enter(names.slice(0, -1))
    if (parent?.lstat(name) != null) return this.#own(this.#enter(names))
    this.changed = true
    if (parent === null || this.#placing.copy.check !== undefined) {
      parent?.assertTakes(this.#placing.desired, this.#pathOf(names))
      return this.#placing.say(`${this.#pathOf(names)} would be created`)
    }
    this.#make(parent, name, names, fresh)
    return undefined
  }

  /** Changes only the requested attributes of an existing directory. */
  #own(directory: OpenDirectory | null): void {
    const { desired, copy, workspace, say } = this.#placing
    if (directory === null) return
    const { uid, gid } = directory.stat()
    if ((desired.uid ?? uid) === uid && (desired.gid ?? gid) === gid) return
    this.changed = true
    if (copy.check !== undefined) {
      assertGivable({ uid: desired.uid, gid: desired.gid }, directory.stat(), directory.path)
      return say(`owner of ${directory.path} would change`)
    }
    workspace.checkCancelled()
    directory.settle(desired.uid, desired.gid, null)
    workspace.report({ changed: true })
    return undefined
  }

  async #putFile(entry: TreeEntry, directory: OpenDirectory | null): Promise<void> {
    const { names, size, mode, index } = entry
    const name = names.at(-1) ?? ''
    const found = directory === null ? null : statReplaceable(directory, name)
    const previous = found?.isFile() === true ? found : null
    const small = size <= longestText ? await whole(entry.pieces) : null
    const isSize = directory !== null && previous?.size === size
    const isSame =
      isSize &&
      (small === null
        ? (await sha256In(directory, name)) === this.#judged.sums.get(index)
        : isSameText(directory, name, small))
    const place = {
      path: this.#pathOf(names),
      directory,
      name,
      previous,
      wanted: attributesFor(this.#placing.desired, previous, mode),
      isSameText: isSame,
      size,
    }
    const pieces = () => (small === null ? entry.pieces : [small])
    const isPlain = () => this.#root !== null && this.#judged.files.has(this.#root, names.join('/'))
    if (await settle(this.#placing, place, pieces, isPlain)) {
      this.changed = true
      if (losesSetIds(this.#placing.desired, previous, mode)) this.#placing.bare.push(place.path)
    }
    // Consume the rest of this entry, so that the next one can start.
    if (small === null) for await (const _ of entry.pieces);
  }

  #putLink({ names, target }: TreeEntry, directory: OpenDirectory | null): void {
    const { copy, workspace, desired, say } = this.#placing
    const name = names.at(-1) ?? ''
    const path = this.#pathOf(names)
    const found = directory === null ? null : statReplaceable(directory, name)
    const isSame = found?.isSymbolicLink() === true && directory?.readLink(name) === target
    if (isSame && (desired.uid ?? found?.uid) === found?.uid && (desired.gid ?? found?.gid) === found?.gid)
      return
    this.changed = true
    if (directory !== null) assertReplaceable(directory, name, true)
    if (copy.check !== undefined) directory?.assertTakes(desired, path)
    if (directory === null || copy.check !== undefined)
      return say(`${path} would be ${found === null ? 'written' : 'replaced'}`)
    const temporary = workspace.reserve(directory)
    try {
      directory.makeLink(temporary, target)
      if (isAsked(desired)) directory.own(temporary, desired, path)
      workspace.checkCancelled()
      if (copy.backup === true && found !== null) directory.link(name, backupName(name, workspace.taskId))
      directory.rename(temporary, name)
      workspace.report({ changed: true })
    } finally {
      directory.remove(temporary)
    }
    return say(`${path} ${found === null ? 'written' : 'replaced'}`)
  }
}

/** The target directory of a tree. A missing one is created, if its parent exists. */
function rootOf({ copy, workspace, desired }: Placing): { root: OpenDirectory | null; isNew: boolean } {
  const path = normalize(copy.path).replace(/(?<=.)\/$/, '')
  const isMeantAsDirectory = copy.path.endsWith('/')
  if (path === '/') return { root: OpenDirectory.open(path), isNew: false }
  const parent = OpenDirectory.open(dirname(path))
  try {
    const name = basename(path)
    const found = parent.lstat(name)
    // A trailing / follows a symlink, as everywhere.
    if (found?.isSymbolicLink() === true && isMeantAsDirectory)
      return { root: OpenDirectory.open(path), isNew: false }
    if (found !== null) {
      if (found.isDirectory()) return { root: parent.child(name), isNew: false }
      throw new Failure(`${path} is ${kindOf(found)}, not a directory`)
    }
    if (copy.check !== undefined) {
      parent.assertTakes(desired, path)
      return { root: null, isNew: true }
    }
    workspace.checkCancelled()
    parent.makeDirectory(name, isAsked(desired) ? ownersMode : usualMode)
    parent.sync()
    workspace.report({ changed: true })
    const root = parent.child(name)
    root.settle(desired.uid, desired.gid, usualMode)
    return { root, isNew: true }
  } finally {
    parent.close()
  }
}

/**
 * Writes a tar below a directory, each file atomically; returns whether anything had to change. The whole tar
 * is validated before anything is written. A tree of more than `mostEntries` is refused.
 */
export async function putTree(
  placing: Placing,
  spool: number,
  mostEntries = Number.POSITIVE_INFINITY,
): Promise<boolean> {
  const judged = await judge(spool, mostEntries)
  const { root, isNew } = rootOf(placing)
  const tree = new TreeCopy(placing, { root, isNew }, judged)
  try {
    for await (const entry of entriesOf(spool, judged.cuts)) if (entry.cut === null) await tree.put(entry)
    tree.end()
    return tree.changed
  } finally {
    tree.close()
    root?.close()
  }
}

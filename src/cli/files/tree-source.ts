import { realpathSync, statSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { partsOf } from '../../client/upload.ts'
import { RsmError } from '../../core/errors.ts'
import { nameOf as textOf } from '../../disk/files/byte-names.ts'
import { Failure } from '../../disk/files/failure.ts'
import { OpenDirectory } from '../../disk/files/open-directory.ts'
import { type TreeRoot, topName, treeOf } from '../../disk/files/pack-tree.ts'
import { nameOf } from './copy-order.ts'
import { explained, type LocalSource } from './send.ts'

interface Named {
  readonly source: string
  /** Empty: its content goes to the top of the tree; `topName`: it is the top itself. */
  readonly name: string
}

/** Errors: `usage`. */
function rootOf({ source, name }: Named): TreeRoot {
  // Resolves a symlink given as source; those inside are copied as symlinks.
  const path = textOf(realpathSync.native(source, 'buffer'))
  try {
    return name === '' || name === topName
      ? { directory: OpenDirectory.open(path), name: null, tarName: name }
      : { directory: OpenDirectory.open(dirname(path)), name: basename(path), tarName: name }
  } catch (error) {
    throw explained(error)
  }
}

/**
 * Directories and files as one tree, built while it is sent. A single directory is the tree itself, with its
 * own mode and owner if `hasTop`. Errors: `usage` for duplicate names; while reading, for unreadable entries,
 * special files, and changes.
 */
export function treeSource(sources: readonly string[], hasTop: boolean): LocalSource {
  const alone = hasTop ? topName : ''
  const named = sources.map((source) => ({ source, name: sources.length === 1 ? alone : nameOf(source) }))
  const twice = named.find(
    ({ name }, at) => name !== '' && named.some((other, i) => i < at && other.name === name),
  )
  if (twice !== undefined) throw new RsmError('usage', `two sources have the name ${twice.name}`)
  for (const { source, name } of named)
    if ((name === '' || name === topName) && !statSync(source).isDirectory())
      throw new RsmError('usage', `${source} is not a directory`)
  const roots = named.map(rootOf)
  const changedAt = (path: string) => {
    throw new Failure(`${path} changed while it was read; run it again`)
  }
  async function* bytes(): AsyncGenerator<Buffer> {
    try {
      yield* treeOf(roots, { follow: false, changedAt })
    } catch (error) {
      throw explained(error)
    }
  }
  return {
    name: sources.join(', '),
    fileName: sources.map((source) => basename(resolve(source))).join(', '),
    size: null,
    parts: () => partsOf(bytes()),
    close: async () => {
      for (const { directory } of roots.splice(0)) directory.close()
    },
  }
}

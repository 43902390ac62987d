import { readFileSync, statSync } from 'node:fs'
import { type DeclaredParam, parseFrontMatter } from '../../core/script/front-matter.ts'

const mostBytes = 1024 * 1024

/** What the script in this file declares; undefined where there is no such file, or one that a shell would wait for. */
export function fileParams(typed: string): readonly DeclaredParam[] | undefined {
  const path = typed.replace(/^~(?=\/)/, process.env['HOME'] ?? '~')
  const found = statSync(path, { throwIfNoEntry: false })
  if (found?.isFile() !== true || found.size > mostBytes) return undefined
  return parseFrontMatter(readFileSync(path, 'utf8')).matter.params
}

import { string } from '@oclif/core/flags'
import type { ScriptPatch } from '../../core/protocol/http/scripts.ts'
import type { FrontMatter } from '../../core/scripts/front-matter.ts'
import { readScriptText, scriptType, scriptTypeNames } from '../input/script-file.ts'
import { parseWholeSeconds } from '../input/values.ts'
import { type FlagsOf, given, ifGiven, repeated } from './checks.ts'

export const scriptPatchFlags = {
  name: string({ description: 'new name' }),
  description: string({ char: 'd', description: 'description of the script' }),
  type: string({ options: scriptTypeNames, description: 'interpreter' }),
  timeout: string({
    char: 'u',
    helpValue: 'TIME',
    description: "run time on a host, like 5m; 0 = none, default = server's",
  }),
  category: string({ description: "category of the script; '' removes it" }),
  tag: string({
    char: 't',
    ...repeated,
    description: "all tags of the script; '' removes them",
  }),
  file: string({ helpValue: 'FILE', description: 'new text, from a file or - for stdin' }),
}

const kept = ['type', 'timeout', 'description', 'tags', 'category'] as const

/**
 * Settings whose front matter changed between two texts, so that a stored script follows its text. Unchanged ones stay as stored,
 * because an option may have set them. The name never changes.
 */
export function frontMatterPatch(previous: FrontMatter, matter: FrontMatter): ScriptPatch {
  const changed = kept.filter((key) => JSON.stringify(previous[key]) !== JSON.stringify(matter[key]))
  const patch = changed.flatMap((key) => {
    const value = matter[key] ?? null
    return value === null && key === 'type' ? [] : [[key, value] as const]
  })
  return Object.fromEntries(patch)
}

/** Reads the flags as a merge patch; empty if none was given. */
export async function readScriptPatch(flags: FlagsOf<typeof scriptPatchFlags>): Promise<ScriptPatch> {
  const { name, description, type, timeout, category, tag, file } = flags
  return given({
    name,
    description,
    type: ifGiven(type, (named) => scriptType(named, '')),
    timeout: timeout === 'default' ? null : ifGiven(timeout, (text) => parseWholeSeconds('--timeout', text)),
    category: category === '' ? null : category,
    tags: tag?.filter((each) => each !== ''),
    content: await ifGiven(file, readScriptText),
  })
}

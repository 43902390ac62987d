import { string } from '@oclif/core/flags'
import type { ScriptPatch } from '../../core/protocol/http/scripts.ts'
import type { FrontMatter } from '../../core/script/front-matter.ts'
import { readScriptText, scriptType, scriptTypeNames } from '../input/script-file.ts'
import { parseWholeSeconds } from '../input/values.ts'

/** What of a stored script can be changed from the command line. */
export const scriptPatchFlags = {
  name: string({ description: 'new name' }),
  description: string({ char: 'd', description: 'what it does' }),
  type: string({ options: scriptTypeNames, description: 'what runs it' }),
  timeout: string({
    char: 'u',
    helpValue: 'TIME',
    description: "run time on a host, like 90 or 5m; 0 = none; default = the server's",
  }),
  category: string({ description: "category of the script; '' removes it" }),
  tag: string({
    char: 't',
    multiple: true,
    multipleNonGreedy: true,
    description: "all tags of the script; '' removes them",
  }),
  file: string({ helpValue: 'FILE', description: 'new text, from a file or - for stdin' }),
}

type ScriptPatchFlags = {
  readonly [name in Exclude<keyof typeof scriptPatchFlags, 'tag'>]?: string | undefined
} & { readonly tag?: readonly string[] | undefined }

const kept = ['type', 'timeout', 'description', 'tags', 'category'] as const

/**
 * What a new text says of itself otherwise than the former one, so that a stored script keeps in step with its text. What
 * both say alike is left as it is: somebody may have set it apart. A name is never changed by a text.
 */
export function frontMatterPatch(former: FrontMatter, matter: FrontMatter): ScriptPatch {
  const changed = kept.filter((key) => JSON.stringify(former[key]) !== JSON.stringify(matter[key]))
  const patch = changed.flatMap((key) => {
    const value = matter[key] ?? null
    return value === null && key === 'type' ? [] : [[key, value] as const]
  })
  return Object.fromEntries(patch)
}

/** The merge patch that the options say; empty where none was given. */
export async function readScriptPatch(flags: ScriptPatchFlags): Promise<ScriptPatch> {
  const patch: ScriptPatch = {}
  if (flags.name !== undefined) patch.name = flags.name
  if (flags.description !== undefined) patch.description = flags.description
  if (flags.type !== undefined) patch.type = scriptType(flags.type, '')
  if (flags.timeout !== undefined)
    patch.timeout = flags.timeout === 'default' ? null : parseWholeSeconds('--timeout', flags.timeout)
  if (flags.category !== undefined) patch.category = flags.category === '' ? null : flags.category
  if (flags.tag !== undefined) patch.tags = flags.tag.filter((tag) => tag !== '')
  if (flags.file !== undefined) patch.content = await readScriptText(flags.file)
  return patch
}

import { string } from '@oclif/core/flags'
import { BaseCommand } from '../../cli/command/base-command.ts'
import { type FlagsOf, given, ifGiven, needed, repeated } from '../../cli/flags/checks.ts'
import { editText } from '../../cli/input/editor.ts'
import { fileNameOf, readScriptText, scriptType, scriptTypeNames } from '../../cli/input/script-file.ts'
import { parseWholeSeconds } from '../../cli/input/values.ts'
import { findScript } from '../../cli/names/names.ts'
import { readFrontMatter } from '../../cli/text/front-matter.ts'
import type { Client } from '../../client/client.ts'
import { RsmError } from '../../core/errors.ts'
import type { Script, ScriptPatch } from '../../core/protocol/http/scripts.ts'
import { type FrontMatter, parseFrontMatter } from '../../core/scripts/front-matter.ts'

const scriptPatchFlags = {
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

export default class ScriptsEdit extends BaseCommand {
  static override summary = 'Change a stored script; without options, its text in $VISUAL or $EDITOR'
  static override description =
    'Every change makes a new version. Tasks keep the version that they ran; `rsm scripts versions` lists them. \
Settings in the comments of a new text (docs/use/scripts.md) are stored; options win.'
  static override examples = [
    '$ rsm scripts edit deploy',
    '$ rsm scripts edit deploy --file ./deploy.sh --timeout 10m',
    '$ rsm scripts versions deploy 3 | rsm scripts edit deploy --file -   # back to version 3',
  ]
  static override args = { script: needed('name of the script') }
  static override flags = scriptPatchFlags

  async run() {
    const { args, flags } = await this.parse(ScriptsEdit)
    const patch = await readScriptPatch(flags)
    const client = await this.client()
    const previous = await findScript(client, args.script)
    const inEditor = Object.keys(patch).length === 0
    const script = inEditor
      ? await this.#edit(client, previous)
      : await client.scripts.update(previous.id, {
          ...this.#ofText(previous, patch.content, flags.file),
          ...patch,
        })
    if (script.version === previous.version) this.done(`${script.name} is unchanged: no new version`)
    else this.done(`changed ${script.name} (version ${script.version})`)
    return script
  }

  #ofText(previous: Script, content: string | undefined, file = 'the text'): ScriptPatch {
    if (content === undefined) return {}
    const what = file === '-' ? 'the script on stdin' : file
    return textPatch(previous, content, what, (text) => this.notice(text))
  }

  async #edit(client: Client, script: Script): Promise<Script> {
    const { path, text, remove } = await editText(
      script.content,
      fileNameOf(script),
      `rsm scripts edit ${script.name} --file FILE`,
    )
    try {
      const stored =
        text === script.content ? script : await storeText(client, script, this.#ofText(script, text))
      remove()
      return stored
    } catch (error) {
      if (!(error instanceof RsmError)) throw error
      throw new RsmError(error.code, error.message, {
        fields: error.fields,
        hint: `your text is kept: rsm scripts edit ${script.name} --file ${path}`,
        cause: error,
      })
    }
  }
}

/** Reads the flags as a merge patch; empty if none was given. */
async function readScriptPatch(flags: FlagsOf<typeof scriptPatchFlags>): Promise<ScriptPatch> {
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

/** The new text, and the settings that changed in its front matter. */
function textPatch(
  previous: Script,
  content: string,
  what: string,
  notice: (text: string) => void,
): ScriptPatch {
  const matter = readFrontMatter(content, what, notice)
  if (matter.name !== undefined && matter.name !== previous.name)
    notice(`${what} says name=${matter.name}; it is kept as ${previous.name} (--name renames)`)
  return { ...frontMatterPatch(parseFrontMatter(previous.content).matter, matter), content }
}

const ofFrontMatter = ['type', 'timeout', 'description', 'tags', 'category'] as const

/**
 * Settings whose front matter changed between two texts, so that a stored script follows its text. Unchanged ones stay as stored,
 * because an option may have set them. The name never changes.
 */
function frontMatterPatch(previous: FrontMatter, matter: FrontMatter): ScriptPatch {
  const changed = ofFrontMatter.filter((key) => JSON.stringify(previous[key]) !== JSON.stringify(matter[key]))
  const patch = changed.flatMap((key) => {
    const value = matter[key] ?? null
    return value === null && key === 'type' ? [] : [[key, value] as const]
  })
  return Object.fromEntries(patch)
}

/** Stores text from the editor. Errors: `conflict` if another user changed the script meanwhile. */
async function storeText(client: Client, { id, name, version }: Script, patch: ScriptPatch): Promise<Script> {
  const current = await client.scripts.get(id)
  if (current.version !== version)
    throw new RsmError('conflict', `${name} has changed meanwhile: it is now version ${current.version}`)
  return client.scripts.update(id, patch)
}

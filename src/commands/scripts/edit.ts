import { BaseCommand } from '../../cli/command/base-command.ts'
import { needed } from '../../cli/flags/checks.ts'
import { frontMatterPatch, readScriptPatch, scriptPatchFlags } from '../../cli/flags/script.ts'
import { editText } from '../../cli/input/editor.ts'
import { fileNameOf } from '../../cli/input/script-file.ts'
import { findScript } from '../../cli/names/names.ts'
import { readFrontMatter } from '../../cli/text/front-matter.ts'
import type { Client } from '../../client/client.ts'
import { RsmError } from '../../core/errors.ts'
import type { Script, ScriptPatch } from '../../core/protocol/http/scripts.ts'
import { parseFrontMatter } from '../../core/scripts/front-matter.ts'

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

/** Stores text from the editor. Errors: `conflict` if another user changed the script meanwhile. */
async function storeText(client: Client, { id, name, version }: Script, patch: ScriptPatch): Promise<Script> {
  const current = await client.scripts.get(id)
  if (current.version !== version)
    throw new RsmError('conflict', `${name} has changed meanwhile: it is now version ${current.version}`)
  return client.scripts.update(id, patch)
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

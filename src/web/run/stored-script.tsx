import type { Script } from '../../core/protocol/http/scripts.ts'
import { sanitize, sanitizeLine } from '../../ui/text/sanitize.ts'
import { paramField } from './task-of.ts'

type Param = Script['params'][number]

function ParamField({ param }: { param: Param }) {
  const { name, required, secret, description, default: value, pattern } = param
  const hints = [sanitizeLine(description), pattern === null ? '' : `matches ${pattern}`].filter(Boolean)
  const hintId = `about-${name}`
  const rest = {
    name: paramField(name),
    class: 'code',
    required,
    spellcheck: false,
    'aria-describedby': hints.length > 0 ? hintId : undefined,
  }
  return (
    <div class="field">
      <label>
        {name}
        {required && <small> required</small>}
        {secret && <small> secret</small>}
        {secret ? (
          <input type="password" autoComplete="new-password" {...rest} />
        ) : (
          <input type="text" autoComplete="off" autoCapitalize="off" defaultValue={value ?? ''} {...rest} />
        )}
      </label>
      {hints.length > 0 && <small id={hintId}>{hints.join(' · ')}</small>}
    </div>
  )
}

interface StoredScriptProps {
  scripts: readonly Script[]
  /** The one that is chosen. */
  script: Script | undefined
  onChoose: (id: number | undefined) => void
}

/** A stored script, its text, and a field for each param that it declares. */
export function StoredScript({ scripts, script, onChoose }: StoredScriptProps) {
  return (
    <>
      <label>
        Script
        <select
          name="scriptId"
          required
          onChange={(event) => onChoose(Number(event.currentTarget.value) || undefined)}
        >
          <option value="">{scripts.length === 0 ? 'None is stored yet' : 'Choose one …'}</option>
          {scripts.map(({ id, name, description }) => (
            <option key={id} value={id} selected={id === script?.id}>
              {sanitizeLine(description === '' ? name : `${name} – ${description}`)}
            </option>
          ))}
        </select>
      </label>
      {script && (
        <details key={script.id}>
          <summary>{`Text, version ${script.version} (${script.type})`}</summary>
          <pre class="script code" tabIndex={0} aria-label="Script text">
            {sanitize(script.content)}
          </pre>
        </details>
      )}
      {script?.params.map((param) => (
        <ParamField key={`${script.id} ${param.name}`} param={param} />
      ))}
    </>
  )
}

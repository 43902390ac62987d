import { useState } from 'preact/hooks'
import { showBytes } from '../../ui/text/bytes.ts'
import { Field } from '../parts/field.tsx'

interface CopyFieldsProps {
  onCheck?: (isCheck: boolean) => void
  /** Of a schedule: what of the file it has already, or that it has none yet; a secret file goes with its first task. */
  scheduled?: { kept: string | undefined }
}

/** The file, which may be there already. */
function FileField({ kept }: { kept: string | undefined }) {
  const [size, setSize] = useState<number | undefined>()
  const ofKept = kept === undefined ? '' : `${kept}; stays where none is chosen`
  return (
    <Field name="copy.fileId" label="File" hint={size === undefined ? ofKept : showBytes(size)}>
      {(given) => (
        <input
          {...given}
          type="file"
          required={kept === undefined}
          onChange={(event) => setSize(event.currentTarget.files?.[0]?.size)}
        />
      )}
    </Field>
  )
}

/** Who may do what with it there. */
function Rights() {
  return (
    <div class="columns">
      <Field name="copy.mode" label="Mode, in octal">
        {(given) => <input {...given} placeholder="as before, else 0644" autoComplete="off" />}
      </Field>
      <Field name="copy.owner" label="Owner">
        {(given) => <input {...given} placeholder="as before" spellcheck={false} autoCapitalize="off" />}
      </Field>
      <Field name="copy.group" label="Group">
        {(given) => <input {...given} placeholder="as before" spellcheck={false} autoCapitalize="off" />}
      </Field>
    </div>
  )
}

/** Which file goes where, and how. */
export function CopyFields({ onCheck = () => undefined, scheduled }: CopyFieldsProps) {
  return (
    <>
      <FileField kept={scheduled?.kept} />
      <Field name="copy.kind" label="As what">
        {(given) => (
          <select {...given}>
            <option value="FILE">The file as it is</option>
            <option value="TREE">A tar archive, of which all that is in it goes to the path</option>
          </select>
        )}
      </Field>
      <Field
        name="copy.path"
        label="Path on the hosts"
        hint="Absolute. One that ends in / is a directory; %h is the name of the host, %% a percent sign."
      >
        {(given) => (
          <input
            {...given}
            class="code"
            required
            placeholder="/etc/app/app.conf"
            spellcheck={false}
            autoCapitalize="off"
            autoComplete="off"
          />
        )}
      </Field>
      <Field name="copy.check" label="What to do">
        {(given) => (
          <select {...given} onChange={(event) => onCheck(event.currentTarget.value !== '')}>
            <option value="">Copy it</option>
            <option value="CHANGED">Dry run: say which hosts would change</option>
            <option value="DIFF">Dry run: show how the text would change</option>
          </select>
        )}
      </Field>
      <Rights />
      <label class="check">
        <input type="checkbox" name="copy.backup" value="true" />
        Keep the file that is replaced, as NAME.rsm-TASK
      </label>
      {scheduled === undefined && (
        <label class="check">
          <input type="checkbox" name="secret" value="true" />
          Secret: kept sealed on the server, and only until the task ends
        </label>
      )}
    </>
  )
}

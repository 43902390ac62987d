import { useState } from 'preact/hooks'
import { showBytes } from '../../cli/text/amounts.ts'
import { InputField, SelectField, verbatim } from '../parts/field.tsx'

interface CopyFieldsProps {
  onCheck: (isCheck: boolean) => void
  /** Of a schedule: what of the file it has already, or that it has none yet; a secret file goes with its first task. */
  scheduled: { kept: string | undefined } | undefined
}

const kinds = [
  ['FILE', 'The file as it is'],
  ['TREE', 'A tar archive, of which all that is in it goes to the path'],
] as const

const checks = [
  ['', 'Copy it'],
  ['CHANGED', 'Dry run: say which hosts would change'],
  ['DIFF', 'Dry run: show how the text would change'],
] as const

const asBefore = { placeholder: 'as before', spellcheck: false, autoCapitalize: 'off' } as const

/** The file, which may be there already. */
function FileField({ kept }: { kept: string | undefined }) {
  const [size, setSize] = useState<number | undefined>()
  const ofKept = kept === undefined ? '' : `${kept}; stays where none is chosen`
  return (
    <InputField
      name="copy.fileId"
      label="File"
      hint={size === undefined ? ofKept : showBytes(size)}
      type="file"
      required={kept === undefined}
      onChange={(event) => setSize(event.currentTarget.files?.[0]?.size)}
    />
  )
}

/** Who may do what with it there. */
function Rights() {
  return (
    <div class="columns">
      <InputField
        name="copy.mode"
        label="Mode, in octal"
        placeholder="as before, else 0644"
        autoComplete="off"
      />
      <InputField name="copy.owner" label="Owner" {...asBefore} />
      <InputField name="copy.group" label="Group" {...asBefore} />
    </div>
  )
}

/** Which file goes where, and how. */
export function CopyFields({ onCheck, scheduled }: CopyFieldsProps) {
  return (
    <>
      <FileField kept={scheduled?.kept} />
      <SelectField name="copy.kind" label="As what" options={kinds} />
      <InputField
        name="copy.path"
        label="Path on the hosts"
        hint="Absolute. One that ends in / is a directory; %h is the name of the host, %% a percent sign."
        class="code"
        required
        placeholder="/etc/app/app.conf"
        {...verbatim}
      />
      <SelectField
        name="copy.check"
        label="What to do"
        options={checks}
        onChoose={(check) => onCheck(check !== '')}
      />
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

const fetchedKinds = [
  ['FILE', 'A file'],
  ['TREE', 'A directory, which comes as a tar archive'],
] as const

/** What is fetched from hosts. */
export function FetchFields() {
  return (
    <>
      <InputField
        name="fetch.path"
        label="Path on the hosts"
        hint="Absolute. %h is the name of the host, %% a percent sign. What comes is saved from the page of the task."
        class="code"
        required
        placeholder="/var/log/app/app.log"
        {...verbatim}
      />
      <SelectField name="fetch.kind" label="What is there" options={fetchedKinds} />
      <label class="check">
        <input type="checkbox" name="fetch.follow" value="true" />
        Follow symlinks
      </label>
    </>
  )
}

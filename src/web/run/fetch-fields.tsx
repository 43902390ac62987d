import { InputField, SelectField, verbatim } from '../parts/field.tsx'

const kinds = [
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
      <SelectField name="fetch.kind" label="What is there" options={kinds} />
      <label class="check">
        <input type="checkbox" name="fetch.follow" value="true" />
        Follow symlinks
      </label>
    </>
  )
}

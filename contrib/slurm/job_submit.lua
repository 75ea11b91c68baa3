--[[
job_submit.lua - jobs of the partitions that Berth looks after arrive held.

Lies next to slurm.conf, which says JobSubmitPlugins=lua.  People keep plain sbatch; Berth
decides when and where a job starts, so nobody else may lift its hold.  Everything in
other partitions is none of our business.  Four lines to fill in:
]]

-- The partitions Berth looks after.
local managed = { gpu = true }

-- Who may start jobs besides root: the numeric user id that berth-slurm runs as ('id -u slurm'
-- where that is SlurmUser), or nil.
local berth_uid = nil

-- Where jobs may report how far they are: "https://HOST:PORT#FINGERPRINT" of 'berthd --listen',
-- with the fingerprint that 'berth token list' prints; or nil.
local report_to = nil

-- What berthd renews while it can start jobs, as slurm_heartbeat in berthd.yaml names it, in a
-- folder that nobody else can write to.  Once it is older than it says (fail_open_s there), or
-- is not there, jobs are not held and Slurm starts them by itself.  nil: they wait for berthd,
-- however long it is away.
local heartbeat = "/run/berth/slurm.heartbeat"

-- By this berthd knows a job that was left to Slurm (executor/slurm/slurm.h).
local left_to_slurm = "berth: left to Slurm, as berthd was away"

-- Its first line says when it was written, in seconds since 1970, and for how many seconds that
-- is good; 0: for ever.  Those after it, "TYPE GPUS NODES", say what the nodes have.
local function read_heartbeat()
    local file = io.open(heartbeat, "r")
    local text = file and file:read(4000) or ""
    if file then
        file:close()
    end
    local time, limit, nodes = string.match(text, "^(%d+) (%d+)\n(.*)")
    return tonumber(time), tonumber(limit), nodes
end

-- Whether berthd is away, and what the nodes have.  Whatever is wrong with the file, a
-- submission does not fail for it.
local function is_away()
    if heartbeat == nil then
        return false, ""
    end
    local good, time, limit, nodes = pcall(read_heartbeat)
    if not good or time == nil or limit == nil then
        return true, ""
    end
    return limit > 0 and math.abs(os.time() - time) > limit, nodes
end

-- How many nodes have so many GPUs of that type, and how many GPUs of it there are; nil: of any
-- type.  Nodes of type "gpu" have GPUs that Slurm knows no type of.
local function count_gpus(nodes, wanted, least)
    local with, all = 0, 0
    for type, gpus, count in string.gmatch(nodes, "(%S+) (%d+) (%d+)\n") do
        if wanted == nil or wanted == type or type == "gpu" then
            all = all + gpus * count
            with = with + (tonumber(gpus) >= least and tonumber(count) or 0)
        end
    end
    return with, all
end

-- Of "gpu", "gpu:2", "gpu:v100" and "gpu:v100:2", which "gres:" may stand before: how many, and
-- of which type (nil: any).  nil: it is about something else.
local function read_gpu_item(item)
    local rest = string.match(string.gsub(item, "^gres[:/]", ""), "^gpu(.*)$")
    if rest == "" then
        return 1, nil
    end
    local count = string.match(rest or "", "^[:=](%d+)$")
    if count ~= nil then
        return tonumber(count), nil
    end
    local type, of_type = string.match(rest or "", "^:([^:=]+)[:=](%d+)$")
    if type ~= nil then
        return tonumber(of_type), type
    end
    type = string.match(rest or "", "^:([^:=]+)$")
    return type and 1, type
end

local function counted(count, noun)
    return string.format("%d %s%s", count, noun, count == 1 and "" or "s")
end

-- Slurm refuses at once what no node can ever give, but not of a job that is held.  Returns what
-- is wrong, or nil.
local function find_impossible(job_desc, nodes)
    local min_nodes = job_desc.min_nodes
    if min_nodes == nil or min_nodes >= slurm.NO_VAL or min_nodes < 1 then
        min_nodes = 1
    end
    for item in string.gmatch(job_desc.tres_per_node or "", "[^,]+") do
        local count, type = read_gpu_item(item)
        local with = count_gpus(nodes, type, count or 0)
        if count ~= nil and with < min_nodes then
            return string.format("asks for %s with %s%s, and there are %d",
                                 counted(min_nodes, "node"), counted(count, "GPU"),
                                 type and " of type " .. type or "", with)
        end
    end
    for item in string.gmatch(job_desc.tres_per_job or "", "[^,]+") do
        local count, type = read_gpu_item(item)
        local _, all = count_gpus(nodes, type, count or 0)
        if count ~= nil and all < count then
            return string.format("asks for %s%s, and there are %d", counted(count, "GPU"),
                                 type and " of type " .. type or "", all)
        end
    end
    return nil
end

-- Every job that waits for Berth is held, so an owner's own hold ('sbatch -H', 'scontrol
-- hold') has to be remembered elsewhere: as a wish in the job's comment, which is his.
local mark = "held=owner"

local function is_marked(comment)
    return comment ~= nil and string.find(comment, "berth:[^%s]*" .. mark) ~= nil
end

local function with_mark(comment)
    if is_marked(comment) then
        return comment
    end
    if comment == nil or comment == "" then
        return "berth:" .. mark
    end
    local changed, count = string.gsub(comment, "berth:", "berth:" .. mark .. ";", 1)
    return count > 0 and changed or comment .. " berth:" .. mark
end

local function without_mark(comment)
    comment = string.gsub(comment, mark .. ";?", "", 1)
    return comment
end

-- A job without a partition goes to the default one.
local function default_partition(part_list)
    for name, part in pairs(part_list) do
        if part.flag_default == 1 then
            return name
        end
    end
    return ""
end

-- Whether one of these partitions ("a,b") is managed, and whether all are.
local function look_up(partitions, part_list)
    local some, all = false, true
    for name in string.gmatch(partitions or default_partition(part_list), "[^,]+") do
        if managed[name] then
            some = true
        else
            all = false
        end
    end
    return some, some and all
end

local function is_set(number)
    return number ~= nil and number ~= slurm.NO_VAL
end

function slurm_job_submit(job_desc, part_list, submit_uid)
    local some, all = look_up(job_desc.partition, part_list)
    if not some then
        return slurm.SUCCESS
    end
    if not all then
        slurm.log_user("a job is either in partitions that Berth looks after, or in others")
        return slurm.ERROR
    end
    if is_set(job_desc.het_job_offset) then -- Slurm alone can start those
        return slurm.SUCCESS
    end
    local owner_holds = job_desc.priority == 0
    if owner_holds then
        job_desc.comment = with_mark(job_desc.comment)
    end
    local away, nodes = is_away()
    if not away then
        local good, wrong = pcall(find_impossible, job_desc, nodes)
        if good and nodes ~= "" and wrong ~= nil then
            slurm.log_user("%s", wrong)
            return slurm.ERROR
        end
        job_desc.priority = 0
    elseif not owner_holds then
        job_desc.admin_comment = left_to_slurm
    end
    if report_to ~= nil and job_desc.environment ~= nil then
        job_desc.environment["BERTH_REPORT_TO"] = report_to
    end
    return slurm.SUCCESS
end

-- 'scontrol release' asks for the highest priority, 'scontrol hold' for 0.  A change of
-- nice can lift even an administrator's hold, one of the partition leads away from us.
-- Nothing can be said to the user here: slurm.log_user() is for submissions only.
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
    if modify_uid == 0 or modify_uid == berth_uid then
        return slurm.SUCCESS
    end
    local was = look_up(job_rec.partition, part_list)
    if job_desc.partition ~= nil then
        local some, all = look_up(job_desc.partition, part_list)
        if some ~= was or all ~= was then
            return slurm.ESLURM_ACCESS_DENIED
        end
    end
    if not was then
        return slurm.SUCCESS
    end
    if is_set(job_desc.priority) and job_desc.priority == 0 then
        job_desc.comment = with_mark(job_desc.comment or job_rec.comment)
        return slurm.SUCCESS
    end
    local away = is_away() -- then whatever Slurm itself allows
    if is_set(job_desc.priority) and is_marked(job_rec.comment) then
        -- The owner lets it go: it waits for Berth again, as the others do.
        if not away then
            job_desc.priority = slurm.NO_VAL
        end
        job_desc.comment = without_mark(job_rec.comment)
        return slurm.SUCCESS
    end
    if (is_set(job_desc.priority) or is_set(job_desc.nice)) and not away then
        return slurm.ESLURM_ACCESS_DENIED
    end
    -- Who may be told to leave is asked for with the job (--no-requeue), not when it is told.
    if is_set(job_desc.requeue) and job_desc.requeue ~= slurm.NO_VAL16 then
        return slurm.ESLURM_ACCESS_DENIED
    end
    return slurm.SUCCESS
end

return slurm.SUCCESS

"""Known faults of agent libraries, and the tests that hold Lighter to the opposite.

`pytest -k KF_046` runs the tests of one fault. A test belongs to a fault by its name,
`test_KF_046_…`, or by standing in this table.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["FAULTS", "Fault", "keywords"]


@dataclass(frozen=True)
class Fault:
    """One fault.

    Attributes:
        id: Its id.
        rule: What must hold instead.
        tests: Tests that hold it, as `file::function` below `tests/`; those that are
            named by the id are found without.
    """

    id: str
    rule: str
    tests: tuple[str, ...] = ()


_OWN = re.compile(r"test_(KF_\d{3})_")
_STEMS = {
    "A": "openai/test_openai_agent.py",
    "B": "benchmarks/test_copies.py",
    "CA": "claude/test_claude_agent.py",
    "CC": "claude/test_claude_clients.py",
    "CD": "claude/test_claude_decode.py",
    "CE": "claude/test_claude_encode.py",
    "CF": "claude/test_claude_errors.py",
    "CP": "claude/test_claude_provider.py",
    "CR": "claude/test_claude_recordings.py",
    "D": "openai/test_openai_decode.py",
    "DH": "deepseek/test_deepseek_history.py",
    "DP": "deepseek/test_deepseek_provider.py",
    "E": "openai/test_openai_encode.py",
    "F": "openai/test_openai_errors.py",
    "H": "core/test_fault_history.py",
    "I": "core/test_imports.py",
    "K": "openai/test_chat_decode.py",
    "KA": "openai/test_chat_agent.py",
    "KE": "openai/test_chat_encode.py",
    "KP": "openai/test_chat_provider.py",
    "L": "plugins/test_lab.py",
    "O": "core/test_documents.py",
    "P": "openai/test_openai_provider.py",
    "R": "openai/test_openai_recordings.py",
    "RC": "core/test_seed_run_context.py",
    "RT": "servers/test_round_trips.py",
    "S": "core/test_fault_stream.py",
    "SA": "servers/test_strict_agents.py",
    "SE": "adapters/test_secrets.py",
    "T": "core/test_fault_tools.py",
    "V": "core/test_fault_values.py",
    "W": "core/test_tool_hooks.py",
    "Y": "core/test_fault_sync.py",
    "Z": "adapters/test_retries.py",
    "art": "packaging/test_artifacts.py",
    "cls": "core/test_closing.py",
    "fh": "core/test_failing_hooks.py",
    "fuzz": "adapters/test_fuzz.py",
    "hid": "core/test_hostile_documents.py",
    "hl": "openai/test_openai_histories.py",
    "lim": "core/test_seed_limits.py",
    "msg": "core/test_seed_messages.py",
    "sc": "plugins/test_scan.py",
    "sg": "servers/test_strict_generated.py",
    "sh": "openai/test_openai_shapes.py",
    "wf": "meta/test_workflows.py",
}


def _fault(number: int, rule: str, *tests: str) -> Fault:
    whole: list[str] = []
    for each in tests:
        stem, _, name = each.partition(":")
        whole.append(f"{_STEMS[stem]}::test_{name}")
    return Fault(f"KF-{number:03}", rule, tuple(whole))


FAULTS: tuple[Fault, ...] = (
    # The bytes of a stream.
    _fault(
        1,
        "lines end at LF, CRLF and CR only; other separators are text",
        "CD:separator_characters_in_text_end_no_line",
        "D:separator_characters_in_text_end_no_line",
        "K:separator_characters_and_keep_alives_end_no_event",
        "V:events_do_not_depend_on_cuts_and_line_ends",
    ),
    _fault(
        2,
        "a character may be cut anywhere",
        "CD:line_ends_and_cuts_change_nothing",
        "D:line_ends_and_cuts_change_nothing",
        "K:cuts_change_nothing",
    ),
    _fault(3, "an event stream is UTF-8, whatever a header says"),
    _fault(
        4,
        "the three line ends give one result",
        "V:events_are_the_same_for_the_three_line_ends",
        "CD:line_ends_and_cuts_change_nothing",
        "D:line_ends_and_cuts_change_nothing",
    ),
    _fault(
        5,
        "the data lines of one event are joined, in any order with other fields",
        "CD:event_over_several_data_lines_is_joined",
        "D:event_over_several_data_lines_is_joined",
        "V:events_do_not_depend_on_cuts_and_line_ends",
    ),
    # The end of a stream, and errors inside it.
    _fault(
        6,
        "an error inside a good status has the code of its kind",
        "CD:errors_inside_a_reply_map_by_their_type",
        "CF:error_events_map_by_type_and_keep_no_partial_text",
        "D:errors_inside_a_reply_map_by_their_code",
        "K:errors_inside_a_reply_are_classified",
    ),
    _fault(
        7,
        "a reply without its proper end fails; no tool runs, older turns stay",
        "CD:stream_without_an_end_is_an_error",
        "D:stream_without_an_end_is_an_error",
        "D:incomplete_reply_is_an_error",
        "K:reply_that_does_not_say_how_it_ended_is_an_error",
        "A:failed_second_turn_keeps_the_first",
        "CA:failed_second_turn_keeps_the_first",
        "KA:failed_second_turn_keeps_the_first",
    ),
    _fault(
        8,
        "a connection that breaks is a network error with its cause",
        "CF:broken_connections_are_network_errors",
        "F:broken_connections_are_network_errors",
        "CF:undecodable_bytes_are_a_bad_response",
        "F:undecodable_bytes_are_a_bad_response",
    ),
    _fault(
        9,
        "pings change nothing; an error event always counts",
        "CD:noise_between_events_changes_nothing",
        "D:noise_between_events_changes_nothing",
        "CF:error_events_map_by_type_and_keep_no_partial_text",
    ),
    _fault(
        10,
        "a provider's stream ends with one message, or the call fails",
        "H:provider_that_breaks_the_grammar_fails_and_no_tool_runs",
        "H:generated_scripts_end_valid_once_and_the_same_in_run_and_stream",
    ),
    # Words that nobody knew.
    _fault(
        11,
        "unknown events, deltas and blocks are passed over",
        "CD:unknown_blocks_deltas_and_keys_are_kept_or_ignored",
        "D:unknown_items_and_parts_are_kept_as_native_context",
        "K:events_that_say_nothing_are_ignored",
        "sh:no_shape_of_an_event_is_a_crash",
    ),
    _fault(
        12,
        "only the documented reasons to stop complete a reply",
        "CD:accepted_stop_reasons_complete",
        "CD:every_other_stop_reason_is_an_error_with_that_word",
        "D:other_statuses_are_errors_with_that_word",
        "K:other_ends_are_errors_with_the_word_of_the_service",
    ),
    _fault(
        13,
        "what is no event with a known type never crashes the reader",
        "D:wrong_events_are_bad_responses",
        "CD:wrong_events_are_bad_responses",
        "D:noise_between_events_changes_nothing",
        "K:no_shape_of_a_chunk_is_a_crash",
    ),
    _fault(
        14,
        "a refusal and a full context are told as what they are",
        "CA:refusal_is_seen_by_the_application",
        "CD:empty_refusal_is_visible_and_never_replayed",
        "CD:every_other_stop_reason_is_an_error_with_that_word",
        "D:refusal_is_text_with_its_own_stop_reason",
        "K:refusal_is_text_and_named_as_the_stop_reason",
    ),
    _fault(
        15,
        "an unknown reason to stop fails with its own word; older turns stay",
        "CA:failed_second_turn_keeps_the_first",
        "A:failed_second_turn_keeps_the_first",
        "KA:failed_second_turn_keeps_the_first",
        "CD:every_other_stop_reason_is_an_error_with_that_word",
    ),
    # Pieces that are put together.
    _fault(
        16,
        "pieces of arguments go to their own call",
        "CD:interleaved_calls_keep_their_own_arguments",
        "D:interleaved_calls_keep_their_own_arguments",
        "K:interleaved_fragments_go_to_their_calls",
    ),
    _fault(
        17,
        "halves of a character meet; each text event can be encoded",
        "CD:surrogate_halves_meet",
        "D:surrogate_halves_meet",
        "K:surrogate_halves_in_two_events_are_joined",
        "V:joined_text_does_not_depend_on_the_cuts",
    ),
    _fault(
        18,
        "run and stream give the same messages",
        "CA:tool_loop_over_the_wire",
        "A:tool_loop_over_the_wire",
        "KA:tool_loop_over_the_wire",
        "H:generated_scripts_end_valid_once_and_the_same_in_run_and_stream",
    ),
    _fault(
        19,
        "calls around a text keep their order and arguments",
        "CD:interleaved_calls_keep_their_own_arguments",
        "K:calls_of_careless_servers_are_kept_apart",
    ),
    _fault(
        20,
        "reasoning is the same whole and streamed",
        "CD:whole_reply_equals_streamed_reply",
        "D:whole_reply_equals_streamed_reply",
        "K:whole_reply_equals_streamed_reply",
    ),
    # Arguments.
    _fault(
        21,
        "blank arguments are the empty object",
        "T:blank_arguments_mean_the_empty_object",
    ),
    _fault(
        22,
        "arguments stay as text; no parser of an SDK touches them",
        "D:arguments_are_kept_as_they_came",
        "CD:call_without_input_has_an_empty_object",
        "K:blank_arguments_stay_blank_and_are_sent_back_as_an_object",
        "T:blank_arguments_mean_the_empty_object",
    ),
    _fault(
        23,
        "arguments that are no object fail that call alone",
        "T:bad_argument_text_is_one_bounded_error_result",
        "KE:arguments_that_are_no_object_travel_inside_one",
        "CE:arguments_are_always_an_object",
    ),
    _fault(
        24,
        "a call that the output limit cut fails the reply and runs nothing",
        "CA:failed_second_turn_keeps_the_first",
        "A:failed_second_turn_keeps_the_first",
        "D:incomplete_reply_is_an_error",
        "CD:blocks_that_never_stop_are_complete_unless_they_are_calls",
    ),
    _fault(
        25,
        "a parameter of any name gets its value, or is refused at once",
        "T:parameter_of_any_name_receives_its_value",
        "T:parameters_that_a_model_cannot_give_are_refused_by_name",
    ),
    _fault(
        26,
        "names that the validation library uses itself work too",
        "T:parameter_of_any_name_receives_its_value",
        "T:parameter_may_have_an_alias_that_is_a_keyword",
        "T:parameters_that_a_model_cannot_give_are_refused_by_name",
    ),
    # Which call is which.
    _fault(
        27,
        "empty and repeated ids fail the reply before anything runs",
        "H:provider_that_breaks_the_grammar_fails_and_no_tool_runs",
        "K:missing_and_repeated_ids_are_made_unique",
        "SA:call_ids_that_come_again",
    ),
    _fault(
        28,
        "a call of an unknown tool is an error result and the loop goes on",
        "T:unknown_tool_with_a_long_name_gives_a_bounded_result",
        "T:no_call_is_dispatched_to_a_similar_name",
    ),
    _fault(29, "a call that a stream shows and then completes runs once"),
    _fault(
        30,
        "no call goes to a tool with a similar name",
        "T:no_call_is_dispatched_to_a_similar_name",
        "SA:names_that_a_model_made_up",
    ),
    # Exceptions that steer.
    _fault(
        31,
        "a CancelledError of a tool's own is its error; a real one passes",
        "T:exception_of_every_kind_becomes_an_error_result",
        "T:cancelling_the_caller_is_not_a_tool_error",
    ),
    _fault(
        32,
        "a failing call leaves the others of its reply alone",
        "T:failing_call_leaves_its_siblings_alone",
    ),
    _fault(
        33,
        "a thread is as good as new after a tool has thrown anything",
        "T:worker_threads_are_reused",
        "T:base_exceptions_pass_and_later_calls_work",
    ),
    _fault(
        34,
        "what a tool cancels or times inside itself stays inside",
        "T:inner_cancellations_and_timeouts_are_tool_errors",
    ),
    _fault(35, "no tool runs on, or begins, when its run has ended"),
    # Threads and context.
    _fault(
        36,
        "a synchronous tool does not stop the loop",
        "T:sync_tool_does_not_stop_the_loop",
        "T:callable_of_every_kind_is_called_where_it_belongs",
    ),
    _fault(
        37,
        "tools and hooks see the caller's context variables",
        "T:context_variables_reach_sync_tools_and_stay_inside",
        "S:context_variables_are_those_of_the_stream_call",
        "RC:tools_see_the_callers_context_variables",
    ),
    _fault(
        38,
        "a coroutine is awaited, however its function is wrapped",
        "T:callable_of_every_kind_is_called_where_it_belongs",
    ),
    _fault(
        39,
        "blocking work leaves the loop even where an awaitable comes of it",
        "T:callable_of_every_kind_is_called_where_it_belongs",
    ),
    _fault(
        40,
        "each kind of tool runs where it can, also in one reply",
        "T:callable_of_every_kind_is_called_where_it_belongs",
    ),
    # Results.
    _fault(
        41,
        "a result of any kind has a JSON form or is an error result",
        "T:result_of_every_kind_has_a_json_form",
        "T:result_without_a_json_form_is_an_error_result",
        "T:generator_result_becomes_an_array",
    ),
    _fault(
        42,
        "lone surrogates never reach a request",
        "T:lone_surrogates_of_a_result_are_replaced",
        "V:any_text_can_be_encoded",
        "E:lone_surrogates_are_replaced",
        "CE:lone_surrogates_become_replacement_characters",
        "KE:lone_surrogates_are_replaced",
    ),
    _fault(
        43,
        "what goes to the model is strict JSON",
        "T:result_without_a_json_form_is_an_error_result",
        "V:json_is_strict_both_ways",
    ),
    _fault(
        44,
        "a large result costs no more than its size",
        "T:ten_megabytes_of_result_pass_whole",
    ),
    _fault(
        45,
        "texts that are cut are cut between characters, visibly",
        "T:error_text_is_bounded_and_cut_visibly",
    ),
    # Calls and their results.
    _fault(
        46,
        "what a cancelled run leaves can be continued",
        "S:stopping_a_run_inside_a_tool_waits_for_the_tools_cleanup",
        "S:messages_are_a_valid_history_at_every_moment",
        "H:any_prefix_of_a_valid_history_is_repaired_by_closing_calls_only",
        "SA:cancelled_runs_can_be_continued",
    ),
    _fault(
        47,
        "a history with faults is repaired or refused, never sent",
        "H:repair_makes_any_history_acceptable",
        "H:faulty_history_is_repaired_by_runs_and_refused_by_models",
        "CF:doomed_histories_are_not_sent",
        "F:doomed_histories_are_not_sent",
    ),
    _fault(
        48,
        "results of one reply stand together, in order, before other text",
        "CE:one_user_turn_per_tool_round",
        "DH:calls_of_a_batch_stand_together_and_before_their_results",
    ),
    _fault(
        49,
        "a finished result is there for the application after a break",
        "S:bare_break_with_the_stream_held_lets_no_tool_and_no_call_start",
        "H:leaving_a_generated_stream_anywhere_leaves_a_usable_history",
    ),
    _fault(
        50,
        "a call that fails at once still has its result",
        "T:failing_call_leaves_its_siblings_alone",
        "CE:one_user_turn_per_tool_round",
    ),
    # Leaving early.
    _fault(
        51,
        "leaving a stream raises nothing and lets nothing more happen",
        "S:break_inside_async_with_lets_nothing_more_happen",
        "S:bare_break_with_the_stream_held_lets_no_tool_and_no_call_start",
    ),
    _fault(
        52,
        "streams are closed in order, also by the collector and the loop's end",
        "S:cancelling_a_pending_next_ends_the_run",
        "S:garbage_stream_with_a_parked_run_is_never_destroyed_pending",
        "S:shutdown_with_a_held_stream_is_silent",
        "cls:a_held_stream_is_closed_in_order_when_the_loop_ends",
    ),
    _fault(
        53,
        "connections come back to the pool, however a stream ended",
        "CC:fifty_streams_leave_no_more_sockets_than_the_pool",
        "P:fifty_streams_leave_no_more_sockets_than_the_pool",
        "KP:connection_is_reused_and_given_back",
    ),
    _fault(
        54,
        "cancelling a run cancels its tool and waits for it",
        "S:run_cancelled_in_a_tool_waits_for_the_tools_cleanup",
        "S:stopping_a_run_inside_a_tool_waits_for_the_tools_cleanup",
    ),
    _fault(
        55,
        "a stream may be read and closed by different tasks",
        "S:closing_with_a_pending_next_ends_both",
        "S:run_that_is_closed_in_another_context_is_silent",
    ),
    _fault(
        56,
        "everything that holds a connection has a close that may be repeated",
        "CC:close_is_idempotent_and_leaves_no_socket",
        "P:close_is_idempotent_and_leaves_no_socket",
        "S:model_stream_closes_the_providers_stream",
        "V:model_and_agent_close_what_their_provider_holds",
    ),
    _fault(
        57,
        "closing works while another task waits for the next event",
        "S:closing_with_a_pending_next_ends_both",
        "S:concurrent_closes_do_not_interrupt_the_providers_cleanup",
    ),
    _fault(
        58,
        "the close of each kind of stream is found and awaited",
        "S:closing_styles_of_foreign_streams_are_all_awaited",
        "W:leaving_a_hooked_model_stream_early_ends_the_call",
    ),
    # Loops.
    _fault(
        59,
        "one agent serves one loop after the other",
        "Y:asyncio_run_three_times_with_one_agent",
        "Y:run_sync_works_again_and_again_in_the_main_thread",
        "CC:one_provider_serves_one_loop_after_the_other",
        "P:one_provider_serves_one_loop_after_the_other",
        "KP:one_provider_serves_one_loop_after_the_other",
    ),
    _fault(
        60,
        "one provider serves loops in several threads",
        "CC:one_provider_serves_loops_in_several_threads",
        "P:one_provider_serves_loops_in_several_threads",
        "V:client_of_a_loop_closed_without_shutdown_is_dropped",
        "P:injected_client_on_a_second_loop_fails_with_a_sentence",
    ),
    _fault(
        61,
        "the synchronous door works inside a loop, or says what to use",
        "Y:run_sync_works_inside_a_running_loop",
        "Y:sync_tools_may_run_agents_three_deep",
        "Y:run_sync_on_the_private_loop_itself_is_refused",
    ),
    _fault(
        62,
        "the synchronous door keeps context and makes no thread per call",
        "Y:context_variables_of_the_caller_are_visible_and_stay_the_callers",
        "Y:run_sync_adds_neither_threads_nor_loops",
    ),
    # Reasoning that goes back.
    _fault(
        63,
        "encrypted reasoning is asked for and goes back whole, before its call",
        "E:fixed_fields_are_always_sent",
        "E:native_items_are_sent_byte_for_byte",
        "A:tool_loop_over_the_wire",
    ),
    _fault(
        64,
        "thinking goes back in its place, byte for byte",
        "CE:native_blocks_are_sent_byte_for_byte",
        "CA:tool_loop_over_the_wire",
        "SA:tool_loops_of_six_turns",
    ),
    _fault(
        65,
        "reasoning goes back to services that demand it",
        "DH:reasoning_is_sent_back_before_its_calls",
        "DH:turns_with_calls_never_lack_reasoning",
        "KE:service_that_demands_reasoning_gets_it_on_each_turn_with_calls",
        "DP:tool_loop_over_the_wire",
    ),
    _fault(
        66,
        "no reasoning is sent without what followed it",
        "D:reasoning_without_a_successor_is_not_kept",
        "CD:what_the_service_refuses_is_not_kept",
    ),
    _fault(
        67,
        "a service gets its own context back and nobody else's",
        "SA:histories_go_from_each_provider_to_each_other_and_back",
        "CA:foreign_history_goes_on_and_is_reported",
        "DH:other_services_never_get_this_reasoning",
    ),
    _fault(
        68,
        "all hidden fields survive, in every combination",
        "D:opaque_reasoning_survives_in_every_combination",
        "CD:signatures_citations_and_summaries_are_assembled",
    ),
    # Stored histories.
    _fault(
        69,
        "a stored history gives the same bytes in the next request",
        "RT:each_prefix_gives_the_same_request_after_json",
        "O:a_document_gives_the_same_messages_and_the_same_text",
        "CE:copies_and_pickles_are_replayed_too",
        "E:copies_and_pickles_are_replayed_too",
    ),
    _fault(
        70,
        "whatever stands in a document, loading it builds messages only",
        "hid:mutated_documents_do_no_harm",
        "V:native_context_is_plain_text",
    ),
    _fault(
        71,
        "messages, events and responses have a JSON form",
        "RT:recorded_replies_survive_json",
        "O:a_document_gives_the_same_messages_and_the_same_text",
    ),
    # Odd messages.
    _fault(
        72,
        "empty texts are not sent back",
        "CE:blank_texts_and_empty_turns_are_left_out",
        "E:empty_replies_are_skipped",
        "K:empty_replies_are_never_sent_back",
        "SA:replies_that_say_nothing",
    ),
    _fault(
        73,
        "part of a reply never becomes a message",
        "S:messages_survive_a_failure_at_any_turn",
        "H:leaving_a_generated_stream_anywhere_leaves_a_usable_history",
        "CF:deltas_before_a_failure_are_shown_but_no_message",
        "F:deltas_before_a_failure_are_shown_but_no_message",
    ),
    _fault(
        74,
        "the system prompt is sent once and never stored",
        "H:system_prompt_is_sent_once_and_never_stored",
        "SA:system_messages_in_all_places",
    ),
    _fault(75, "an empty last reply is visible", "H:empty_last_reply_is_visible"),
    # Schemas.
    _fault(
        76,
        "every reference of a schema leads somewhere inside it",
        "T:parameter_of_every_type_is_described_and_checked",
        "T:nested_models_keep_their_own_rules",
    ),
    _fault(
        77,
        "recursive parameters have a finite schema",
        "T:parameter_of_every_type_is_described_and_checked",
        "T:recursive_arguments_validate_at_depth",
    ),
    _fault(
        78,
        "free objects work as parameters",
        "T:free_form_keyword_arguments_work",
        "T:parameter_of_every_type_is_described_and_checked",
    ),
    _fault(
        79,
        "quoted annotations are resolved where the function stands",
        "T:local_names_resolve_in_postponed_annotations",
        "T:return_type_under_type_checking_does_not_matter",
        "T:callable_objects_and_methods_resolve_their_own_annotations",
    ),
    _fault(
        80,
        "defaults are used, accepted by services and never shared",
        "T:defaults_of_every_kind_are_used_and_never_shared",
    ),
    _fault(
        81,
        "descriptions on recursive fields stay, without expansion",
        "T:parameter_of_every_type_is_described_and_checked",
    ),
    # Names of tools.
    _fault(
        82,
        "names that services refuse are refused at construction",
        "T:illegal_names_are_refused_with_the_rule",
    ),
    _fault(
        83,
        "two tools of one name are refused",
        "T:two_tools_of_one_name_are_refused",
        "T:names_that_differ_by_case_are_reported",
    ),
    _fault(
        84,
        "tools of two plugins with one name are refused by name",
        "L:two_tools_plugins_with_one_tool_are_an_error",
    ),
    # Hooks.
    _fault(
        85,
        "an exception of a hook ends the run and is the very error",
        "fh:a_failing_hook_ends_the_run_in_the_documented_way",
        "S:cancelled_error_of_a_hook_propagates",
    ),
    _fault(
        86,
        "hooks run as often as the table says, on every path",
        "H:hooks_run_as_often_as_documented",
    ),
    _fault(
        87,
        "what a hook returns is used; edits in place mean what is documented",
        "H:change_by_before_model_holds_for_one_call",
        "H:change_by_agent_hooks_is_used_and_leaks_nowhere",
    ),
    _fault(
        88,
        "an edit in place holds for one model call",
        "H:change_by_before_model_holds_for_one_call",
    ),
    _fault(
        89,
        "an `after_agent` hook that raises loses no message",
        "H:hook_that_raises_fails_the_run_with_its_own_error",
        "fh:a_failing_hook_ends_the_run_in_the_documented_way",
    ),
    _fault(
        90,
        "a changed request changes no stored message",
        "H:change_by_before_model_holds_for_one_call",
    ),
    # Repetitions.
    _fault(
        91,
        "a failing model call is repeated alone; no tool runs again",
        "H:generated_scripts_end_valid_once_and_the_same_in_run_and_stream",
    ),
    _fault(
        92,
        "a pause that a service asks for is kept, or told when it does not fit",
        "Z:a_pause_that_does_not_fit_is_told_at_once",
        "Z:a_pause_that_fits_is_kept",
        "Z:pauses",
        "Z:seconds_that_are_asked_for_are_on_the_error",
    ),
    _fault(
        93,
        "a tool can learn its call's id and its run's",
        "RC:tool_gets_the_run_and_the_model_never_sees_that_parameter",
        "RC:each_run_has_an_id_of_its_own_and_one_for_all_its_hooks",
    ),
    # Silence.
    _fault(
        94,
        "a reply is over at its last event, not at the end of the connection",
        "CF:silent_connection_after_the_reply_does_not_hold_it_up",
        "F:silent_connection_after_the_reply_does_not_hold_it_up",
        "KP:silence_after_the_finish_reason_does_not_hold_the_reply_up",
    ),
    _fault(
        95,
        "silence ends by the timeout or by cancellation",
        "CF:stalls_end_by_the_timeout_or_by_cancellation",
        "F:stalls_end_by_the_timeout_or_by_cancellation",
        "Z:silence_is_told_after_one_timeout",
    ),
    _fault(96, "pings keep a slow reply alive beyond the timeout"),
    _fault(97, "many stalled streams all end at the caller's timeout"),
    # Limits.
    _fault(
        98,
        "a limit of n model calls allows exactly n and keeps their messages",
        "H:limit_allows_exactly_its_number_of_model_calls",
        "lim:a_failed_limit_undoes_nothing",
    ),
    _fault(
        99,
        "a hook may limit a run and nothing is lost",
        "lim:a_hook_can_limit_model_calls",
        "H:hook_that_raises_fails_the_run_with_its_own_error",
    ),
    _fault(
        100,
        "an agent inside a tool has limits of its own",
        "H:agent_inside_a_tool_has_a_limit_of_its_own",
    ),
    # Shared state.
    _fault(
        101,
        "runs of one agent do not mix and do not wait for each other",
        "H:concurrent_runs_of_one_agent_do_not_mix",
    ),
    _fault(
        102,
        "every request has the same tools and options",
        "H:tool_specs_are_the_same_in_every_request",
        "CE:thirty_requests_have_the_same_tools",
    ),
    _fault(
        103,
        "one agent serves threads with loops of their own",
        "H:one_agent_serves_threads_with_loops_of_their_own",
        "Y:run_sync_serves_eight_threads_at_once",
    ),
    # Copies.
    _fault(
        104,
        "values can be copied; live objects say why they cannot",
        "V:values_survive_every_kind_of_copy",
        "V:live_objects_copy_or_refuse_in_words",
        "P:providers_cannot_be_copied_or_pickled",
        "CP:providers_cannot_be_copied_or_pickled",
    ),
    _fault(
        105,
        "errors survive pickle without cause and without keys",
        "V:errors_survive_copies_without_their_cause",
        "SE:nothing_that_an_error_reaches_shows_a_secret",
    ),
    # Cost.
    _fault(
        106,
        "a run leaves nothing for the collector",
        "H:run_leaves_nothing_for_the_collector",
        "H:error_raised_through_the_doors_is_freed",
    ),
    _fault(
        107,
        "long replies are read in linear time",
        "B:a_small_delta_costs_the_same_late_in_a_long_reply",
        "CD:long_replies_are_not_decoded_in_quadratic_time",
        "D:long_replies_are_not_decoded_in_quadratic_time",
        "K:long_replies_are_not_decoded_in_quadratic_time",
        "V:splitter_is_linear_in_chunks_of_one_byte",
    ),
    # Secrets.
    _fault(
        108,
        "no key and no query of a URL stands in an error",
        "SE:nothing_that_an_error_reaches_shows_a_secret",
        "V:redact_takes_keys_and_url_parts_out",
        "V:endpoint_has_no_user_and_no_query",
    ),
    _fault(
        109,
        "logs show neither keys nor content",
        "SE:no_logger_shows_the_key_of_a_request",
        "CP:log_records_are_structured_and_hold_no_content",
        "P:log_records_are_structured_and_hold_no_content",
        "CP:sdk_log_shows_prompts_but_no_keys",
    ),
    _fault(
        110,
        "a tool's exception reaches the model bounded; its detail stays here",
        "T:error_text_names_no_path_and_no_credentials",
        "T:whole_error_goes_to_the_log_at_debug_only",
    ),
    _fault(
        111,
        "error results are short and repeat no argument",
        "T:error_text_is_bounded_and_cut_visibly",
        "T:validation_errors_show_place_and_rule_never_the_value",
        "T:unknown_tool_with_a_long_name_gives_a_bounded_result",
    ),
    _fault(
        112,
        "options of a wrong kind are named, their values not shown",
        "V:key_of_a_wrong_type_is_refused_without_its_value",
        "V:key_that_cannot_stand_in_a_header_is_refused",
        "P:values_that_cannot_work_are_refused_at_construction",
        "CP:values_that_cannot_work_are_refused_at_construction",
    ),
    # Plugins.
    _fault(
        113,
        "a broken plugin harms no other and is named",
        "L:broken_plugin_is_one_clear_error_and_harms_no_other",
        "L:corrupt_distributions_do_not_hide_good_ones",
    ),
    _fault(
        114,
        "two distributions with one name are an error that names both",
        "L:one_name_served_by_two_distributions_is_an_error",
    ),
    _fault(
        115,
        "a plugin that comes by two ways is registered once",
        "L:module_is_installed_and_registered_without_a_crash",
        "L:one_module_may_serve_several_names",
    ),
    _fault(
        116,
        "releases are built from pinned parts, attested, and hold the package only",
        "art:a_wheel_holds_its_package_and_metadata_only",
        "wf:every_action_is_pinned_by_a_commit_beside_its_version",
        "wf:only_what_was_tested_and_attested_is_published",
        "wf:a_job_has_the_least_permissions_and_an_end",
    ),
    _fault(
        117,
        "a plugin for another version is refused in one line; the host goes on",
        "L:plugin_for_another_interface_is_refused",
        "L:plugin_for_this_interface_loads",
    ),
    _fault(
        118,
        "each distribution counts once; nothing is scanned unasked",
        "L:stale_second_copy_of_a_distribution_is_ignored",
        "L:two_hundred_other_distributions_are_no_trouble",
        "L:distributions_can_be_blocked_or_allowed",
        "L:discovery_imports_nothing",
        "sc:two_versions_in_one_directory_are_broken",
    ),
    # Permission.
    _fault(119, "a hook has ended before the step that it guards begins"),
    _fault(
        120,
        "who denies wins, in every order",
        "W:a_gate_that_denies_wins_in_every_order",
        "W:a_gate_that_fails_fails_closed",
    ),
    _fault(
        121,
        "text of a tool changes the one field that it stands in",
        "CE:text_of_results_changes_nothing_else",
    ),
    # Codes of errors.
    _fault(
        122,
        "statuses give codes whatever the body is",
        "CF:statuses_map_to_codes_whatever_the_body",
        "F:statuses_map_to_codes_whatever_the_body",
        "KP:statuses_map_to_codes_whatever_the_body",
        "DP:documented_statuses_map_to_codes",
    ),
    _fault(
        123,
        "overload is one code, by status and inside a stream",
        "CD:errors_inside_a_reply_map_by_their_type",
        "CF:statuses_map_to_codes_whatever_the_body",
        "CF:broken_connections_are_network_errors",
    ),
)

_BY_TEST: dict[str, set[str]] = {}
for _each in FAULTS:
    for _test in _each.tests:
        _BY_TEST.setdefault(_test, set()).add(_each.id.replace("-", "_"))


def keywords(nodeid: str) -> set[str]:
    """Return the faults that a test belongs to, as words for `-k`."""
    test = nodeid.removeprefix("tests/").partition("[")[0]
    own = _OWN.search(test)
    return _BY_TEST.get(test, set()) | ({own[1]} if own else set())
